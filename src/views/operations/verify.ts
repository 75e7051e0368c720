/**
 * The proof: recomputes what each answer reported about each series, and compares it with the stored data. `docs/proof.md` says what that proves.
 */
import type { Instant } from '../../clock.ts';
import { countSlots } from '../../core/chunk.ts';
import { INTERVAL_MS, type Interval, type SeriesName } from '../../core/interval.ts';
import { intersect, type Spans, union } from '../../core/span.ts';
import type { Sql, SqlOrTransaction } from '../../store/connection/connect.ts';
import { holdPartitions } from '../../store/upkeep/partition.ts';
import { inPages } from '../attestation/read-series.ts';
import { type Account, openLedger } from '../verify/account.ts';
import { ALL_TIME, type Judgement } from '../verify/findings.ts';
import { readImpossibleTimes } from '../verify/impossible-times.ts';
import { FUTURE_TOLERANCE_MS, judge } from '../verify/judge.ts';
import { toHex } from '../verify/modulo.ts';
import {
  type Evidence,
  NONE_ODD,
  readEvidence,
  readOddCandles,
  readRevisions,
  readSeries,
  type SeriesRow,
  sumCandles,
} from '../verify/read-series.ts';
import { unchangedSince, wrongRepairs, wrongRequests, wrongRevisions } from '../verify/records.ts';
import { finalBy } from '../verify/steps.ts';
import { readEach, refuseNulls } from '../verify/unreadable.ts';
import { matching, type SeriesFilter } from './series-filter.ts';

export type SeriesProof = SeriesName &
  Judgement & {
    readonly seriesId: number;
    readonly slotsCovered: number;
    /** Rows inside coverage: final. */
    readonly candles: number;
    /** Rows outside coverage: may still change. */
    readonly provisional: number;
    /** Covered slots without a row: the upstream answered that there is no candle. */
    readonly knownEmpty: number;
    /** Sum of `market.candle_hash` of the final candles modulo 2^64, 16 hexadecimal digits. */
    readonly hash: string;
    /** The stretches to request again after the repair: those mended slots that an answer once made final, or that are wanted. */
    readonly toRefetch: Spans;
  };

export type VerifyFilter = SeriesFilter & {
  /** Only series whose newest step of evidence or newest answer is not older than this, by our clock, or that were created since. */
  readonly since?: Instant | undefined;
};

/**
 * The proof of each matching series, by interval and coin. Each page reads a single snapshot, so it holds while a backfill runs.
 * Memory grows with the steps of evidence of a page, and not with candles or revisions.
 */
export async function* verifySeries(sql: Sql, filter: VerifyFilter, now: Instant): AsyncGenerator<SeriesProof> {
  const listed = await sql<Listed[]>`
    select id, coin_id, quote, interval, candles from market.series
    where ${matching(sql, filter)} ${changedSince(sql, filter)} order by interval desc, coin_id, quote`;
  const read = (page: readonly Listed[]) =>
    sql.begin('isolation level repeatable read read only', (tx) => verifyPage(tx, page, now)) as Promise<SeriesProof[]>;
  yield* inPages(listed, (page) => readEach(page, read, unreadable));
}

/** The number of series and candles that `verifySeries` will read. */
export async function sizeOf(sql: Sql, filter: VerifyFilter): Promise<{ series: number; candles: number }> {
  const [row] = await sql<{ series: number; candles: number }[]>`
    select count(*) as series, coalesce(sum(candles), 0)::bigint as candles from market.series
    where ${matching(sql, filter)} ${changedSince(sql, filter)}`;
  return row!;
}

function changedSince(sql: Sql, { since }: VerifyFilter) {
  if (since === undefined) return sql``;
  return sql`and (created_at >= ${since} or answered_at >= ${since} or exists (
    select from market.evidence e where e.series_id = market.series.id
      and e.known_at + coalesce(e.step_seconds[cardinality(e.step_seconds)], 0) * interval '1 second' >= ${since}))`;
}

type Listed = SeriesName & { readonly id: number; readonly candles: number };

/** A repair would read the same rows. */
function unreadable({ id, coinId, quote, interval }: Listed, why: string): SeriesProof[] {
  const nothing = { slotsCovered: 0, candles: 0, provisional: 0, knownEmpty: 0, hash: toHex(0n) };
  const noRepairs = { notes: [], stretches: [], repairs: [], removals: [], toRefetch: [] };
  const text = `it cannot be verified: its stored rows have values that Chandler never writes (${why})`;
  return [{ seriesId: id, coinId, quote, interval, ...nothing, ...noRepairs, differences: [text] }];
}

async function verifyPage(tx: SqlOrTransaction, page: readonly Listed[], now: Instant): Promise<SeriesProof[]> {
  const { interval } = page[0]!;
  refuseNulls('market.series', page, ['coinId', 'quote', 'interval']);
  // This must come before the snapshot.
  await holdPartitions(tx, [interval]);
  const ids = page.map(({ id }) => id);
  const rows = await readSeries(tx, ids);
  const evidence = await readEvidence(tx, interval, ids);
  const ledgers = new Map(rows.map((row) => [row.id, openLedger(row, evidence.get(row.id)!, INTERVAL_MS[interval])]));
  const bounds = [...ledgers].map(([id, ledger]) => ({ id, bounds: ledger.bounds }));
  const buckets = await sumCandles(tx, interval, bounds, now + FUTURE_TOLERANCE_MS);
  for (const bucket of buckets) ledgers.get(bucket.id)!.addBucket(bucket);
  for await (const revision of readRevisions(tx, interval, ids)) ledgers.get(revision.seriesId)?.addRevision(revision);
  const accounts = new Map([...ledgers].map(([id, ledger]) => [id, ledger.close()]));
  const judged = await judgePage(tx, { interval, rows, evidence, accounts }, now);
  return rows.map((row) => {
    const account = accounts.get(row.id)!;
    const { all, final } = account.stored;
    const bounded = row.covered.every((span) => Number.isFinite(span.from) && Number.isFinite(span.to));
    const slotsCovered = bounded ? countSlots(row.covered, row.interval) : Number.POSITIVE_INFINITY;
    return {
      seriesId: row.id,
      coinId: row.coinId,
      quote: row.quote,
      interval: row.interval,
      slotsCovered,
      candles: final.candles,
      provisional: all.candles - final.candles,
      // Uses the count that was written with the answers: a candle that was deleted is not known to be empty.
      knownEmpty: Math.max(0, slotsCovered - row.coveredCandles),
      hash: toHex(final.digest),
      ...judged.get(row.id)!,
      toRefetch: spansToRequest(judged.get(row.id)!, row, account, now),
    };
  });
}

/** Not every mended slot: a slot that nobody wanted, with a row that no answer reported, is right again without the row. */
function spansToRequest(
  { repairs }: Judgement,
  { wanted, interval }: SeriesRow,
  account: Account,
  now: Instant,
): Spans {
  const isWhole = repairs.some(({ from, to }) => from === ALL_TIME.from && to === ALL_TIME.to);
  // If the whole series is mended, its evidence is not trusted.
  const known = isWhole ? wanted : union(wanted, finalBy(account.steps, account.segments));
  const width = INTERVAL_MS[interval];
  // Slots before 1970, and slots in the future, cannot be requested.
  return intersect(intersect(repairs, known), [{ from: 0, to: Math.floor(now / width) * width }]);
}

type Page = {
  readonly interval: Interval;
  readonly rows: readonly SeriesRow[];
  readonly evidence: ReadonlyMap<number, readonly Evidence[]>;
  readonly accounts: ReadonlyMap<number, Account>;
};

async function judgePage(tx: SqlOrTransaction, page: Page, now: Instant): Promise<Map<number, Judgement>> {
  const { interval, rows, evidence, accounts } = page;
  const ids = rows.map(({ id }) => id);
  const revisions = await wrongRevisions(tx, interval, ids);
  const requests = await wrongRequests(tx, ids);
  const withDoubt = ids.filter((id) =>
    evidence.get(id)!.some(({ kind, detail }) => kind === 'mended' && detail?.includes(' differs')),
  );
  const repairs = withDoubt.length === 0 ? null : await wrongRepairs(tx, interval, withDoubt);
  const withOdd = ids.filter((id) => accounts.get(id)!.stored.odd > 0);
  const odd = withOdd.length === 0 ? null : await readOddCandles(tx, interval, withOdd, now + FUTURE_TOLERANCE_MS);
  const impossibleTimes = await readImpossibleTimes(tx, interval, ids);
  const judgeOne = (series: SeriesRow, unchanged: ReadonlySet<number>) => {
    const { id } = series;
    const records = [revisions, requests, repairs].flatMap((found) => found?.get(id) ?? []);
    const stored = { series, evidence: evidence.get(id)!, account: accounts.get(id)!, records, unchanged };
    return judge({ ...stored, odd: odd?.get(id) ?? NONE_ODD, impossibleTimes: impossibleTimes.get(id) }, now);
  };
  const judged = new Map(rows.map((row) => [row.id, judgeOne(row, new Set())]));
  // Whether a repair has settled a difference matters only for series with differences.
  const doubtful = rows.filter(
    ({ id }) => judged.get(id)!.differences.length > 0 && evidence.get(id)!.some(({ kind }) => kind === 'mended'),
  );
  if (doubtful.length === 0) return judged;
  const unchanged = await unchangedSince(
    tx,
    doubtful.map(({ id }) => id),
  );
  for (const row of doubtful) judged.set(row.id, judgeOne(row, unchanged.get(row.id) ?? new Set()));
  return judged;
}
