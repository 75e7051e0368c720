/** Impossible rows of an upstream. */
import { SIMULATOR_HEADER } from '../../src/contract/interface/paths.ts';
import { DAY } from '../../src/core/interval.ts';
import type { Script } from '../support/scripted.ts';
import { createScriptedWorld, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import type { WorldOptions } from '../support/world.ts';

export const COIN = 'btc-bitcoin';
export const DAYS = { coins: [COIN], from: TODAY - 33 * DAY, to: TODAY - 3 * DAY };
export const BAD = TODAY - 20 * DAY;

export let world: ScriptedWorld['world'];
export let upstream: ScriptedWorld['upstream'];
export async function make(options: WorldOptions = {}): Promise<void> {
  ({ world, upstream } = await createScriptedWorld(options));
}

export type Row = Record<string, unknown> & { time_open: string };
/** Changes the rows of each answer about candles. */
export const rewriting =
  (change: (rows: Row[]) => unknown[]): Script =>
  async (request, simulated) => {
    const response = await simulated(request);
    if (!request.url.includes('ohlcv') || !response.ok) return response;
    const headers = { [SIMULATOR_HEADER]: response.headers.get(SIMULATOR_HEADER)! };
    return Response.json(change((await response.json()) as Row[]), { headers });
  };
export const atBad = (row: Row) => Date.parse(row.time_open) === BAD;

export async function truth(coinId: string, from: number, to: number) {
  const rows = await world.simulator.data.ohlcv({
    coinId,
    quote: 'usd',
    interval: '24h',
    from,
    to: to - 1,
    limit: 10_000,
  });
  return rows!.map(({ openTime, open, high, low, close }) => ({ at: openTime, open, high, low, close }));
}
export const stored = async () =>
  [
    ...(await world.database.sql`
      select coin_id, open_time as at, open, high, low, close from market.candles order by 1, 2`),
  ].map(
    (row) => ({ ...row }) as { coinId: string; at: number; open: number; high: number; low: number; close: number },
  );
export const quarantined = () => world.database.sql<{ reason: string; row: Row; fetchId: number; at: number | null }[]>`
  select reason, row, fetch_id, open_time as at from market.quarantine order by id`;
