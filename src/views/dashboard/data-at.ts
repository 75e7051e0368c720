/** How recent the newest data are. */
import type { Instant } from '../../clock.ts';
import type { Sql } from '../../store/connection/connect.ts';

export type DataAt = {
  /** As-of instant of the newest answer that was stored; null: none of the requests that were read stored one. */
  readonly at: Instant | null;
  /** How many requests were read, the newest ones; 0: there are none. */
  readonly lookedAt: number;
};

/** How many requests are read until one with data is found. The steps grow, so that the usual case is quick. */
const STEPS = [1_000, 10_000, 100_000] as const;
const MOST = STEPS.reduce((sum, n) => sum + n, 0);
/** A request may become visible this many numbers later than its neighbours, because its transaction ends later. */
const DISORDER = 1_000;

type Step = {
  readonly at: Instant | null;
  readonly lowest: number | null;
  readonly highest: number | null;
  readonly n: number;
};

/** During a long outage, requests that were read once are not read again. */
export function createDataAt(sql: Sql): () => Promise<DataAt> {
  let last: { readonly found: DataAt; readonly highest: number } | null = null;

  return async () => {
    const known = last;
    let at: Instant | null = null;
    let highest: number | null = null;
    let n = 0;
    let below: number | null = null;
    for (const step of STEPS) {
      const above: number = known === null || known.found.at !== null ? 0 : known.highest - DISORDER;
      const one = await look(sql, { above, below, step });
      highest ??= one.highest;
      n += one.n;
      at = one.at;
      below = one.lowest;
      if (at !== null || one.n < step) break;
    }
    // The requests of the last call are known to have brought no data. A number that was read twice counts once.
    if (at === null && known !== null && known.found.at === null && highest !== null)
      n = Math.min(MOST, Math.max(n, known.found.lookedAt + Math.max(0, highest - known.highest)));
    const found = { at, lookedAt: n };
    last = highest === null ? null : { found, highest };
    return found;
  };
}

async function look(
  sql: Sql,
  { above, below, step }: { readonly above: number; readonly below: number | null; readonly step: number },
): Promise<Step> {
  const [row] = await sql<Step[]>`
    select max(as_of) filter (where outcome = 'stored') as at, min(id)::float8 as lowest, max(id)::float8 as highest, count(*)::int as n
    from (
      select id, as_of, outcome from ops.fetch
      where id > ${above}::bigint and (${below}::bigint is null or id < ${below}::bigint) order by id desc limit ${step}
    ) f`;
  return row!;
}
