/**
 * Removes old rows, table by table, while other sessions read and write. It drops partitions without a lock that blocks others
 * (drop-partitions.ts), and deletes rows in small batches. May be killed at any time: the next run continues.
 */
import type { Instant } from '../../clock.ts';
import { type CandleInterval, INTERVALS } from '../../core/interval.ts';
import type { Retention } from '../../core/settings/retention-settings.ts';
import type { Span } from '../../core/span.ts';
import { removeForgotten } from '../candle/candle.ts';
import { createClient, type Database, type Sql, type SqlOrTransaction } from '../connection/connect.ts';
import { withLockUnlessHeld } from '../connection/lock.ts';
import { type DropOptions, dropPartitions, type OldRows } from './drop-partitions.ts';
import { candlesOf, type Partition, type Partitioned, TICKER_HISTORY } from './partition.ts';

/** The archive that must have the candles before they are removed here. */
export type CandleArchive = {
  /** Called before each partition, oldest first. Null when the archive does not have all its candles: then it and all later ones stay. */
  hold(interval: CandleInterval, partition: Span): Promise<HeldPartition | null>;
};

export type HeldPartition = {
  /** Are the candles of the series still equal to those in the archive? Called in the transaction that has locked the series. */
  holds(tx: SqlOrTransaction, seriesId: number): Promise<boolean>;
};

export type Removed = {
  /** Names of the dropped partitions. */
  readonly partitions: readonly string[];
  /** Partitions that are still being read, that got a new answer, or that another process is removing: the next run tries again. */
  readonly inUse: readonly string[];
  /** Partitions that are old enough but stay, because the archive does not have all their candles. */
  readonly notArchived: readonly string[];
  readonly rows: Readonly<Record<'global_history' | 'exchange_history' | 'fetch', number>>;
};

type RetentionOptions = DropOptions & {
  readonly keep: Retention;
  readonly now: Instant;
  /** Without an archive, removed candles are lost. */
  readonly archive?: CandleArchive;
  /** Rows of one batch. */
  readonly batch?: number;
};

const BATCH = 5_000;

/** Does nothing while another process removes rows, because two processes that detach partitions of one table may deadlock. */
export async function removeOld(database: Pick<Database, 'sql' | 'url'>, options: RetentionOptions): Promise<Removed> {
  return (
    (await withLockUnlessHeld(database.sql, 'retention', () => removeAll(database, options))) ?? {
      partitions: [],
      inUse: [],
      notArchived: [],
      rows: { global_history: 0, exchange_history: 0, fetch: 0 },
    }
  );
}

async function removeAll({ sql, url }: Pick<Database, 'sql' | 'url'>, options: RetentionOptions): Promise<Removed> {
  const { keep, now, archive, batch = BATCH } = options;
  // A session of its own, because of its timeouts. (`reserve` of the pool fails: postgres.js 3.4.9 never returns a connection it must first open.)
  const connection = createClient({ url, max: 1 });
  try {
    const before = (ms: number | null) => (ms === null ? Number.NEGATIVE_INFINITY : now - ms);
    const partitions: string[] = [];
    const inUse: string[] = [];
    const notArchived: string[] = [];
    const drop = async (of: Partitioned, ms: number | null, rows: OldRows) => {
      if (ms === null) return false;
      const gone = await dropPartitions(connection, of, before(ms), options, rows);
      partitions.push(...gone.dropped);
      inUse.push(...gone.inUse);
      notArchived.push(...gone.refused);
      return gone.dropped.length + gone.inUse.length + gone.refused.length > 0;
    };
    await drop(TICKER_HISTORY, keep.tickers, { forget: async () => true, isNeeded: async () => false });
    for (const interval of INTERVALS) {
      const of = candlesOf(interval);
      const forget = async ({ from, to }: Partition) => {
        const held = await archive?.hold(interval, { from, to });
        return held !== null && (await forgetCandles(sql, interval, { to, now, held }));
      };
      const isNeeded = (tx: SqlOrTransaction, partition: Partition) => isCovered(tx, interval, partition);
      if (await drop(of, keep.candles[interval], { forget, isNeeded })) await notifyCandlesRemoved(sql, interval);
    }
    const stop = () => options.signal?.aborted === true;
    const rows = {
      global_history: await deleteOld(sql, 'global_history', before(keep.global), batch, stop),
      exchange_history: await deleteOld(sql, 'exchange_history', before(keep.exchanges), batch, stop),
      fetch: await deleteFetches(sql, before(keep.fetches), batch, stop),
    };
    return { partitions, inUse, notArchived, rows };
  } finally {
    await connection.end({ timeout: 5 });
  }
}

/**
 * Removes the time before `to` from the wanted and covered spans, because removed candles must count neither as missing nor as stored. For final
 * slots it adds a step of evidence, with count and digest. A series whose candles are not all in the archive does not change; then the function
 * resolves to false.
 */
async function forgetCandles(
  sql: Sql,
  interval: CandleInterval,
  { to, now, held }: { to: Instant; now: Instant; held: HeldPartition | undefined },
): Promise<boolean> {
  const until = [{ from: Number.NEGATIVE_INFINITY, to }];
  // A cancelled backfill leaves candles that are neither wanted nor covered. Only a series with such candles needs the look at its rows.
  const series = await sql<{ id: number }[]>`
    select id from market.series s
    where interval = ${interval}::market.candle_interval
      and (wanted && ${until}::tstzmultirange or covered && ${until}::tstzmultirange
        or candles > covered_candles and exists (select from market.candle c
          where c.series_id = s.id and c.interval = ${interval}::market.candle_interval and c.open_time < ${to})) order by id`;
  let isAll = true;
  // One transaction for each series, because chunks wait for the lock of their series.
  for (const { id } of series) {
    await sql.begin(async (tx) => {
      await tx`select from market.series where id = ${id} for update`;
      if (held !== undefined && !(await held.holds(tx, id))) {
        isAll = false;
        return;
      }
      await removeForgotten(tx, { id, interval }, until[0]!);
      await tx`delete from ops.second_opinion where series_id = ${id} and span <@ tstzrange(null, ${to})`;
      await tx`
        with gone as materialized (
          select s.covered * ${until}::tstzmultirange as told, t.* from market.series s
          cross join lateral ops.sums(s.id, ${interval}::market.candle_interval, tstzrange(null, ${to}), s.covered,
            s.covered * ${until}::tstzmultirange) t
          where s.id = ${id}
        ), step as materialized (
          select case when not isempty(told)
            then ops.add_evidence(${id}, 'retention', told, ${now}::timestamptz, ${now}::timestamptz, told_candles, told_digest, told_locator)
            end as link
          from gone
        ), never_final as (
          -- No evidence names these, so removeForgotten could not find them if their partition stays in use.
          delete from market.candle c using market.series s
          where s.id = ${id} and c.series_id = s.id and c.interval = ${interval}::market.candle_interval and c.open_time < ${to}
            and not s.covered @> c.open_time
        )
        update market.series s
        set covered = covered - ${until}::tstzmultirange, wanted = wanted - ${until}::tstzmultirange,
          empty_once = empty_once - ${until}::tstzmultirange,
          covered_candles = covered_candles - gone.final_candles, candles = s.candles - gone.candles,
          digest = ops.modulo_2_64(s.digest::numeric - gone.digest),
          steps = steps + (step.link is not null)::integer, link = coalesce(step.link, s.link)
        from gone, step
        where s.id = ${id}`;
    });
  }
  return isAll;
}

async function isCovered(tx: SqlOrTransaction, interval: CandleInterval, { from, to }: Span): Promise<boolean> {
  const [row] = await tx<{ isCovered: boolean }[]>`
    select exists (select from market.series
      where interval = ${interval}::market.candle_interval and covered && ${{ from, to }}::tstzrange) as is_covered`;
  return row!.isCovered;
}

/** Changes the versions of the series again, so that answers cached between `forgetCandles` and the drop of the partition become invalid. */
async function notifyCandlesRemoved(sql: Sql, interval: CandleInterval): Promise<void> {
  await sql`update market.series set version = version where interval = ${interval}::market.candle_interval`;
}

async function deleteOld(
  sql: Sql,
  table: 'global_history' | 'exchange_history',
  before: Instant,
  batch: number,
  stop: () => boolean,
): Promise<number> {
  let removed = 0;
  while (Number.isFinite(before) && !stop()) {
    const { count } = await sql`
      delete from market.${sql(table)} where ctid = any(array(
        select ctid from market.${sql(table)} where at < ${before} limit ${batch}))`;
    removed += count;
    if (count < batch) break;
  }
  return removed;
}

/**
 * Deletes requests that are no longer needed. These stay at any age: requests that a revision, a quarantined row or a
 * refusal refers to; requests with unconfirmed empty slots that are not covered yet, because they may still be confirmed; and the newest of each
 * account and endpoint, which prove that it was ever answered, and how. The sums of each backfill stay: they are counted when requests are recorded.
 *
 * Deletes by ascending id, up to the first request that is young enough: `verify` reports a missing later request as tampering.
 */
async function deleteFetches(sql: Sql, before: Instant, batch: number, stop: () => boolean): Promise<number> {
  let removed = 0;
  let after = 0;
  while (Number.isFinite(before) && !stop()) {
    const [step] = await sql<{ last: number | null; isOld: boolean | null; removed: number }[]>`
      with stretch as materialized (
        select id, bool_and(sent_at < ${before}) over (order by id) as is_old from ops.fetch where id > ${after} order by id limit ${batch}
      ), gone as (
        delete from ops.fetch f using stretch
        where f.id = stretch.id and stretch.is_old
          and not exists (select from market.revision r where r.fetch_id = f.id)
          and not exists (select from market.quarantine q where q.fetch_id = f.id)
          and not exists (select from market.refusal r where r.fetch_id = f.id)
          and (f.unconfirmed_slots is null or coalesce((select s.covered @> f.unconfirmed_slots from market.series s where s.id = f.series_id), true))
          and (f.series_id is not null or exists (
            select from ops.fetch y where y.endpoint = f.endpoint and y.account_id = f.account_id and y.series_id is null
              and y.sent_at > f.sent_at and y.outcome = f.outcome))
          and (f.status is null or exists (
            select from ops.fetch y where y.id > f.id and y.account_id = f.account_id and y.status is not null
              and (f.outcome <> 'stored' or y.outcome = 'stored')))
        returning f.id
      )
      select (select max(id) from stretch) as last, (select bool_and(is_old) from stretch) as is_old,
        (select count(*) from gone) as removed`;
    removed += step!.removed;
    if (step!.last === null || !step!.isOld) break;
    after = step!.last;
  }
  return removed;
}
