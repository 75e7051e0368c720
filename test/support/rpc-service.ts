/** The tool interface over the made-up market and a small catalogue, without a database. */
import { createScaledClock } from '../../src/clock.ts';
import type { Handler } from '../../src/contract/interface/handler.ts';
import type { WarehouseTools } from '../../src/contract/interface/warehouse-tools.ts';
import type { Access } from '../../src/contract/plan/access.ts';
import type { Candles, Catalogue } from '../../src/contract/record/market-data.ts';
import { createService } from '../../src/service/service.ts';
import { createMadeUpMarket } from '../../src/simulator/made-up/made-up.ts';
import { createMadeUpWorld } from '../../src/simulator/made-up/made-up-world.ts';
import { scriptedCatalogue } from './scripted-catalogue.ts';

export const NOW = Date.UTC(2024, 5, 1, 12, 3, 20);
export const frozen = createScaledClock({ speed: 0, startAt: NOW });
export const market = createMadeUpMarket({ world: createMadeUpWorld({ seed: 1, coins: 60 }), clock: frozen });

/** Records what was requested, and admits every caller. */
export function countingAccess(overrides: Partial<Access> = {}) {
  const asked: ('data' | 'account')[] = [];
  const access: Access = {
    admit: (_caller, about) => {
      asked.push(about);
      return { kind: 'admitted', plan: 'enterprise' };
    },
    refuseHistory: () => null,
    refuseTickerHistory: () => null,
    refuseIdChanges: () => null,
    refuseMappings: () => null,
    account: () => null,
    ...overrides,
  };
  return { access, asked };
}

export type RpcServiceOptions = {
  readonly access?: Access;
  readonly data?: Partial<Candles & Catalogue>;
  readonly warehouse?: WarehouseTools;
  readonly origins?: readonly string[];
  readonly isUnavailable?: (error: unknown) => boolean;
  readonly onError?: (error: unknown, where: string) => void;
};

export function rpcService(options: RpcServiceOptions = {}): Handler {
  const { access = countingAccess().access, warehouse, origins, isUnavailable } = options;
  const onError =
    options.onError ??
    ((error: unknown) => {
      throw error;
    });
  const data = { ...market, ...scriptedCatalogue(), ...options.data };
  return createService({ data, access, clock: frozen, warehouse, origins, isUnavailable, onError });
}

/** Sends `body` as JSON, or unchanged if it is text. */
export function sender(service: Handler, headers: Record<string, string> = {}) {
  return async (body: unknown, more: Record<string, string> = {}) => {
    const answer = await service(
      new Request('http://service/rpc', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...headers, ...more },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
      { address: '10.0.0.7' },
    );
    const text = await answer.text();
    // biome-ignore lint/suspicious/noExplicitAny: what is asserted is what it looks like
    return { status: answer.status, headers: answer.headers, json: text === '' ? null : (JSON.parse(text) as any) };
  };
}
