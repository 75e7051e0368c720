/**
 * Merges the staged rows: those whose slot may already have a row, from an earlier import, another file, or another record of the same
 * file. Equal rows change nothing. Different rows are reported first, and changed only when the caller requests it.
 */
import { CANDLE_VALUES } from '../candle/coarse-candle.ts';
import type { ImportTransaction } from './import-transaction.ts';

const valuesOf = (row: string) => `(${CANDLE_VALUES.map((name) => `${row}.${name}`).join(', ')})`;
const hashOf = (row: string) =>
  `market.candle_hash(${row}.open_time, ${CANDLE_VALUES.map((name) => `${row}.${name}`).join(', ')})`;

/**
 * `slot` has one row for each slot with staged rows. `state` is `new`; `same` (equal to the stored row); `contested` (rows of this import differ;
 * one of them may already be in the table, `in_table`); `updated` (an earlier import has stored other values that were not final); or `other`
 * (an earlier import has stored other values as final).
 */
const SLOTS = `
  create temporary table slot on commit drop as
  select a.*, n.rows, c.series_id is not null as in_table,
    case
      when n.differ then 'contested'
      when c.series_id is null then 'new'
      when ${valuesOf('a')} is not distinct from ${valuesOf('c')} then 'same'
      when c.open_time between s.first_open_time and s.last_open_time then case when c.is_final then 'other' else 'updated' end
      else 'contested'
    end as state,
    c.series_id is not null and not coalesce(c.open_time between s.first_open_time and s.last_open_time, false) as is_of_now
  from (select distinct on (series_id, open_time) * from pg_temp.staged_row order by series_id, open_time, file, record) a
  join (
    select series_id, open_time, count(*) as rows, count(distinct ${valuesOf('r')}) > 1 as differ
    from pg_temp.staged_row r group by 1, 2
  ) n using (series_id, open_time)
  join market.imported_series s on s.id = a.series_id
  left join market.imported_candle c on c.series_id = a.series_id and c.open_time = a.open_time`;

export type Staged = {
  /** Rows that equal the stored row. */
  readonly same: number;
  /** Rows that equal another row of this import. */
  readonly twice: number;
  /** Slots for which an earlier import has stored other values that were not final. */
  readonly updated: number;
  /** Rows of slots for which the rows of this import differ. */
  readonly contested: { readonly rows: number; readonly first: readonly StagedRow[] };
  /** Slots for which an earlier import has stored other values as final. */
  readonly other: { readonly slots: number; readonly first: OtherRow | null };
};

type StagedRow = { readonly file: number; readonly record: number };

type Numbers = readonly (number | null)[];
export type OtherRow = StagedRow & {
  readonly seriesId: number;
  /** As Postgres writes it, in UTC. */
  readonly openTime: string;
  /** Open, high, low, close, volume, market cap. */
  readonly stored: Numbers;
  readonly given: Numbers;
};

/** Classifies the staged rows. Changes nothing yet. Names at most `most` of the contested rows. */
export async function readStaged({ query }: ImportTransaction, most: number): Promise<Staged> {
  await query('analyze pg_temp.staged_row');
  await query(SLOTS);
  await query('analyze pg_temp.slot');
  // A row that this import has already put into the table is a row of its files, so it is counted too.
  const [counts] = await query<Record<'same' | 'twice' | 'contested' | 'updated' | 'other', string>>(`
    select count(*) filter (where state = 'same' and not is_of_now) as same,
      coalesce(sum(rows - 1 + (state = 'same' and is_of_now)::int) filter (where state <> 'contested'), 0) as twice,
      coalesce(sum(rows + is_of_now::int) filter (where state = 'contested'), 0) as contested,
      count(*) filter (where state = 'updated') as updated, count(*) filter (where state = 'other') as other
    from pg_temp.slot`);
  const { same, twice, contested, updated, other } = counts!;
  const named = await query<{ file: number; record: string }>(
    `select r.file, r.record from pg_temp.slot s join pg_temp.staged_row r using (series_id, open_time) where s.state = 'contested'
     order by r.file, r.record limit $1`,
    [most],
  );
  const [first] = await query<Omit<OtherRow, 'record'> & { record: string }>(`
    select s.file, s.record, s.series_id as "seriesId", to_char(s.open_time at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS') as "openTime",
      array[${CANDLE_VALUES.map((name) => `c.${name}`).join(', ')}] as stored, array[${CANDLE_VALUES.map((name) => `s.${name}`).join(', ')}] as given
    from pg_temp.slot s join market.imported_candle c using (series_id, open_time) where s.state = 'other' order by s.file, s.record limit 1`);
  return {
    same: Number(same),
    twice: Number(twice),
    updated: Number(updated),
    contested: {
      rows: Number(contested),
      first: named.map(({ file, record }) => ({ file, record: Number(record) })),
    },
    other: { slots: Number(other), first: first === undefined ? null : { ...first, record: Number(first.record) } },
  };
}

/** The change of a series: the differences in its number of candles and in its digest. */
export type Change = { readonly seriesId: number; readonly candles: number; readonly digest: bigint };

/** Stores new rows, replaces `updated` and `other` ones, and removes contested rows of this import. Call it after `readStaged`. */
export async function applyStaged({ query }: ImportTransaction): Promise<Change[]> {
  const changes = [
    `with gone as (
       delete from market.imported_candle c using pg_temp.slot s
       where s.state = 'contested' and s.is_of_now and c.series_id = s.series_id and c.open_time = s.open_time
       returning c.series_id, ${hashOf('c')} as hash
     ) select series_id, -count(*) as candles, -sum(hash::numeric) as digest from gone group by 1`,
    `with made as (
       insert into market.imported_candle as c (open_time, ${CANDLE_VALUES.join(', ')}, series_id, is_final)
       select open_time, ${CANDLE_VALUES.map((name) => `s.${name}`).join(', ')}, series_id, is_final from pg_temp.slot s where state = 'new' order by series_id, open_time
       returning c.series_id, ${hashOf('c')} as hash
     ) select series_id, count(*) as candles, sum(hash::numeric) as digest from made group by 1`,
    `with old as (
       select c.series_id, ${hashOf('c')} as hash from market.imported_candle c join pg_temp.slot s using (series_id, open_time) where s.state in ('updated', 'other')
     ), replaced as (
       update market.imported_candle c set (${CANDLE_VALUES.join(', ')}) = ${valuesOf('s')}, is_final = s.is_final
       from pg_temp.slot s where s.state in ('updated', 'other') and c.series_id = s.series_id and c.open_time = s.open_time
       returning c.series_id, ${hashOf('c')} as hash
     ) select series_id, 0 as candles, sum(hash) as digest from (
       select series_id, hash::numeric from replaced union all select series_id, -hash::numeric from old
     ) both_of_them group by 1`,
  ];
  const out: Change[] = [];
  for (const text of changes) {
    const rows = await query<{ series_id: number; candles: string; digest: string }>(text);
    out.push(
      ...rows.map((row) => ({ seriesId: row.series_id, candles: Number(row.candles), digest: BigInt(row.digest) })),
    );
  }
  // A candle that was provisional at its first import may be final now.
  await query(`
    update market.imported_candle c set is_final = true from pg_temp.slot s
    where s.state = 'same' and s.is_final and not c.is_final and c.series_id = s.series_id and c.open_time = s.open_time`);
  return out;
}

/** Updates the totals of each series. Removes series without candles. */
export async function noteSeries({ query }: ImportTransaction, changes: readonly Change[], at: number): Promise<void> {
  await query(
    `update market.imported_series s set
       imported_at = $4::timestamptz, candles = s.candles + n.candles,
       digest = mod(mod(s.digest::numeric + n.digest + 9223372036854775808, 18446744073709551616) + 18446744073709551616, 18446744073709551616)
         - 9223372036854775808,
       first_open_time = (select min(open_time) from market.imported_candle c where c.series_id = s.id),
       last_open_time = (select max(open_time) from market.imported_candle c where c.series_id = s.id)
     from unnest($1::integer[], $2::bigint[], $3::numeric[]) n (id, candles, digest) where s.id = n.id`,
    [
      changes.map(({ seriesId }) => seriesId),
      changes.map(({ candles }) => candles),
      changes.map(({ digest }) => String(digest)),
      new Date(at).toISOString(),
    ],
  );
  await query('delete from market.imported_series where candles = 0 and id = any($1::integer[])', [
    changes.map(({ seriesId }) => seriesId),
  ]);
}
