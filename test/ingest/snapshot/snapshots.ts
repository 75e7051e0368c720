/** Snapshots of a scripted upstream, stored in a world of their own. */
import postgres from 'postgres';
import { DAY } from '../../../src/core/interval.ts';
import { refreshCatalogue } from '../../../src/ingest/snapshot/coin-list.ts';
import { createSnapshots, type SnapshotOutcome } from '../../../src/ingest/snapshot/snapshots.ts';
import { createScriptedWorld, type ScriptedWorld } from '../../support/scripted-world.ts';

export const MINUTE = 60_000;
export let scripted: ScriptedWorld;

/** A world that has its list of coins, and takes snapshots. */
export async function open({
  catalogue = true,
  coins = 6,
}: {
  readonly catalogue?: boolean;
  readonly coins?: number;
} = {}) {
  scripted = await createScriptedWorld({
    catalogue,
    simulator: { seed: 3, coins, unlimited: true, limits: { plan: 'enterprise' } },
  });
  const { world, upstream } = scripted;
  const chandler = await world.open();
  upstream.forget();
  const { sendRequest, accountId } = chandler.session;
  const { sql } = world.database;
  /** Reads the list of coins, and with it the tickers if the warehouse has none of the last day. */
  const readCoins = () => refreshCatalogue({ sendRequest, sql, clock: world.clock }, 0, DAY);
  return { world, upstream, sql, snapshots: snapshotsOf(sendRequest, accountId), readCoins };
}

export function snapshotsOf(sendRequest: Parameters<typeof createSnapshots>[0]['sendRequest'], accountId: string) {
  const { clock, database } = scripted.world;
  return createSnapshots({ sql: database.sql, sendRequest, clock, accountId });
}

/** A row as upstream sends it. */
export type Row = { readonly id: string; readonly quotes: { readonly USD: Record<string, unknown> } };

/** Makes upstream answer one path with its usual answer, changed. `age`: the age in seconds of a cached answer. */
export function change(path: string, edit: (rows: Row[]) => unknown, age?: () => number) {
  scripted.upstream.script = (request, simulated) => {
    if (!new URL(request.url).pathname.endsWith(path)) return null;
    return (async () => {
      const answer = await simulated(request);
      const headers = new Headers(answer.headers);
      if (age) headers.set('Age', String(age()));
      return new Response(JSON.stringify(edit((await answer.json()) as Row[])), { status: answer.status, headers });
    })();
  };
}

export function stored(outcome: SnapshotOutcome) {
  if (outcome.kind !== 'stored') throw new Error(`not stored, but ${JSON.stringify(outcome)}`);
  return outcome;
}

/** Fields of a record, named as the columns that a query returns. */
export const asColumns = (record: object) =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [postgres.toCamel(name), value]));

export const tickersIn = async () =>
  [
    ...(await scripted.world.database.sql`select coin_id, price, rank, at
    from market.ticker order by coin_id`),
  ] as unknown as { coinId: string; price: number; rank: number; at: number }[];
export const aside = async () => [
  ...(await scripted.world.database.sql<{ endpoint: string; recordId: string; reason: string; times: number }[]>`
    select endpoint, record_id, reason, times from market.quarantine order by endpoint, record_id, reason`),
];
