/** Reads and removes imported candles. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import type { CandleInterval } from '../../core/interval.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { withLockUnlessHeld } from '../connection/lock.ts';

/** A process holds this lock while it adds or removes imported candles. */
export const IMPORT_LOCK = 'import';

export type NamedCoin =
  | { readonly ok: true; readonly coinId: string }
  | { readonly ok: false; readonly problem: string; readonly hint: string | null };

/** Finds the coin of a name. The name is an id, an older id, a symbol, or the address of a contract. */
export async function coinNamed(sql: SqlOrTransaction, name: string): Promise<NamedCoin> {
  // Postgres refuses such a text, whatever it is used for. Damaged files have it.
  if (name.includes('\0')) return { ok: false, problem: `no coin is called ${JSON.stringify(name)}`, hint: null };
  try {
    const [row] = await sql<{ coinId: string }[]>`select market.coin_of(${name}) as coin_id`;
    return { ok: true, coinId: row!.coinId };
  } catch (error) {
    const { code, message, hint } = error as {
      readonly code?: string;
      readonly message: string;
      readonly hint?: string;
    };
    if (code !== '22023') throw error;
    return { ok: false, problem: message, hint: hint ?? null };
  }
}

export type ImportedSource = {
  readonly source: string;
  readonly series: number;
  readonly coins: number;
  readonly intervals: readonly CandleInterval[];
  readonly quotes: readonly Quote[];
  readonly candles: number;
  readonly first: Instant;
  readonly last: Instant;
  readonly importedAt: Instant;
};

/** All sources, sorted by name. */
export async function readImportedSources(sql: SqlOrTransaction): Promise<readonly ImportedSource[]> {
  return sql<ImportedSource[]>`
    select source, count(*) as series, count(distinct coin_id) as coins, array_agg(distinct interval)::text[] as intervals,
      array_agg(distinct quote) as quotes, sum(candles)::bigint as candles, min(first_open_time) as first, max(last_open_time) as last,
      max(imported_at) as imported_at
    from market.imported_series group by 1 order by source collate "C"`;
}

type Dropped = { readonly series: number; readonly candles: number };

/** Removes everything of a source. Resolves to what was removed. Null if an import is running, which may add to the source: nothing is removed. */
export function dropImportedSource(sql: Sql, source: string): Promise<Dropped | null> {
  return withLockUnlessHeld(sql, IMPORT_LOCK, async () => {
    const dropped = await sql.begin(async (tx): Promise<Dropped> => {
      await tx`select set_config('statement_timeout', '0', true)`;
      const rows = await tx<
        { id: number }[]
      >`select id from market.imported_series where source = ${source} for update`;
      const ids = rows.map(({ id }) => id);
      const { count } = await tx`delete from market.imported_candle where series_id = any(${ids}::int[])`;
      await tx`delete from market.imported_series where id = any(${ids}::int[])`;
      return { series: ids.length, candles: count };
    });
    return dropped as Dropped;
  });
}
