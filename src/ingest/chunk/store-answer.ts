/** Reads and checks the answer to a chunk, and stores it with its coverage and the record of the request in one transaction. */
import type { Clock, Instant } from '../../clock.ts';
import { type Plan, rowsPerRequest } from '../../contract/plan/plans.ts';
import { type OhlcvRowRead, readOhlcvRows } from '../../contract/record/ohlcv.ts';
import { readPriceRows } from '../../contract/record/price.ts';
import {
  INTERVAL_MS,
  type Interval,
  isCandleInterval,
  isPriceInterval,
  settledUntil,
  settleMs,
} from '../../core/interval.ts';
import { type ChunkCommit, storeChunk } from '../../store/candle/chunk.ts';
import type { OtherAnswers } from '../../store/candle/lock-series.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { createPartitionKeeper } from '../../store/upkeep/partition.ts';
import { findFetch, recordFetchOnce, type WrittenFetch } from '../../store/work/fetch.ts';
import type { Answer, Exchange } from '../../upstream/answer.ts';
import { MOST_CLOCK_ERROR_MS } from '../../upstream/answer-time.ts';
import { createDriftCheck } from '../answer/schema-drift.ts';
import { expectedDepth, provesNoLimit, unprovenPart } from '../limits/history-limit.ts';
import { lastDayOf } from '../limits/last-day.ts';
import type { LearnedLimits } from '../limits/learned-limits.ts';
import type { LimitOpinions } from '../limits/limit-opinions.ts';
import { type Outcome, UpstreamError } from '../outcome.ts';
import { type ChunkJob, describeChunk } from '../queue/chunk-job.ts';
import { createOriginCheck } from '../request/origin.ts';
import type { OutageRetry } from '../request/outage-retry.ts';
import type { SentRequest } from '../request/send-request.ts';
import { CONFIRM_AFTER_MS, judgeSlots } from './evidence.ts';
import { judgeImplausible } from './implausible.ts';
import { type Compared, recordDifference } from './interval-differences.ts';
import { answeredDay, LAST_DAY, type LastDayWatch, OPEN_DAY } from './last-day.ts';
import { answersOtherRequest, latestOpen } from './other-request.ts';
import { type Findings, validate } from './validate.ts';

/**
 * Stores one answer to the request that `sent` records. @throws UpstreamError when the answer cannot be read, ConfigurationError when it comes from
 * another upstream than all earlier answers; the request is recorded in both cases.
 */
type StoreAnswer = (
  job: ChunkJob,
  sent: SentRequest,
  answer: Extract<Answer, { kind: 'answered' }>,
  retry: OutageRetry,
) => Promise<Outcome>;

type StoreAnswerDeps = {
  readonly sql: Sql;
  readonly clock: Pick<Clock, 'now'>;
  readonly plan: Plan;
  readonly historyLimits: LearnedLimits;
  readonly limits: Pick<LimitOpinions, 'answered'>;
  readonly lastDayWatch: Pick<LastDayWatch, 'late' | 'arrived'>;
  /** Called when an answer can be used. */
  readonly prove: () => void;
};

export function createStoreAnswer({
  sql,
  clock,
  plan,
  historyLimits,
  limits,
  lastDayWatch,
  prove,
}: StoreAnswerDeps): StoreAnswer {
  const readRows = createRowReader(sql);
  const checkOrigin = createOriginCheck(sql);
  const keepPartitions = createPartitionKeeper(sql);

  /** Learns about the history limit from the first candle of an answer. */
  async function learnLimit(job: ChunkJob, first: Instant | undefined, exchange: Exchange, retry: OutageRetry) {
    const { interval } = job;
    await retry(() => limits.answered(job, first ?? null, exchange));
    // Only a candle from beyond the limit proves that there is none: the upstream may refuse with an answer without candles.
    if (first !== undefined && provesNoLimit(historyLimits.of(interval), interval, first, exchange.asOf))
      await retry(() => historyLimits.lift(interval));
  }

  return async (job, { record: sent, requests }, { body, exchange }, retry) => {
    const { interval, coinId, seriesId } = job;
    const rows = await readRows(job, sent, { body, exchange }, retry);
    prove();
    await checkOrigin(exchange, sent, { retry });
    const day = sent.subject === LAST_DAY ? answeredDay(sent.span!, rows, latestOpen(exchange)) : null;
    const span = day?.span ?? sent.span!;
    const record = { ...sent, span };
    const findings = validate({ coinId, interval, span }, rows, latestOpen(exchange));
    // Thousands of small objects that are no longer needed. If they stayed while this function waits for the database, they would outlive the young
    // generation of the garbage collector.
    rows.length = 0;
    if (Array.isArray(body)) body.length = 0;
    const { candles, quarantined, rowCount } = findings;
    const { sentAt, ageMs, durationMs } = exchange;
    const receivedAt = sentAt + durationMs;
    const asOf = knownUntil(exchange, findings, interval);
    // Partitions are created only where there are candles: a coin may have existed in the last few years of the span only.
    const [first, last] = [candles.openTime[0], candles.openTime.at(-1)];
    // A request about a day has no start that a limit could refuse.
    const isOfDay = sent.subject === LAST_DAY || sent.subject === OPEN_DAY;
    if (!isOfDay) await learnLimit(job, first, exchange, retry);
    const compared: { last: Compared | null } = { last: null };
    const limit = historyLimits.of(interval);
    const weighing = {
      ...{ span, interval, findings, sentAt, receivedAt, asOf, ageMs, limit: rowsPerRequest(plan, interval) },
      unproven: isOfDay ? [] : unprovenPart(limit, interval, span, exchange.latest),
      isOfHoles: job.kind === 'holes',
      isOfLastDay: day !== null,
      // The last full day never becomes more final under this plan.
      settledTo: day === null ? settledUntil(asOf, interval) : span.to,
      settlesAfterMs: lastDayOf(expectedDepth(limit), interval, exchange.latest) === null ? settleMs(interval) : 0,
    };
    const answer = {
      ...{ series: { id: seriesId, interval }, span, asOf, candles, quarantined },
      open: findings.cutShort.filter(({ openTime }) => openTime + INTERVAL_MS[interval] > asOf),
      fetch: { ...record, asOf, outcome: 'stored', rows: rowCount },
    };
    const judge = (known: OtherAnswers) => {
      const { found, verdict } = judgeImplausible({ ...weighing, known });
      compared.last = verdict === null ? { found, samples: known.samples } : null;
      const contradictedCandles = found?.contradicts ?? [];
      return verdict ?? { ...judgeSlots({ ...weighing, known }), wasImplausible: found !== null, contradictedCandles };
    };
    const write = () => storeChunk(sql, answer, judge, clock.now);
    const store = () =>
      first !== undefined && isCandleInterval(interval)
        ? keepPartitions(interval, { from: first, to: last! + INTERVAL_MS[interval] }, write)
        : write();
    // If the connection was cut during the commit, the answer may already be stored.
    const counts: WrittenFetch | ChunkCommit = await retry(
      async (again) => (again ? await findFetch(sql, { ...record, asOf }) : null) ?? store(),
    );
    const { last: comparison } = compared;
    if (comparison !== null) await retry(() => recordDifference(sql, job, comparison, { sentAt, receivedAt, ageMs }));
    // Cleared for a similar reason: only a full garbage collection frees a finished query, and what it references
    // (store/connection/postgres-js-patches.ts).
    for (const column of Object.values(candles)) column.length = 0;
    const lateUntil = day?.isLate ? await retry(() => lastDayWatch.late(sent.span!, { sentAt, ageMs })) : null;
    if (lateUntil !== null) return { kind: 'deferred', until: lateUntil, requests, reason: 'day is late' };
    if (day !== null && first !== undefined)
      await retry(() => lastDayWatch.arrived({ from: first, to: first + INTERVAL_MS[interval] }));
    if ('withheld' in counts && counts.withheld)
      return { kind: 'deferred', until: counts.withheld.until, requests, reason: 'second opinion' };
    const { stored, revised } = counts;
    const isOpen = day !== null && 'covered' in counts && counts.covered.length === 0 && first === undefined;
    const againAt = isOpen ? { againAt: sentAt + CONFIRM_AFTER_MS } : {};
    return { kind: 'stored', requests, stored, revised, quarantined: counts.quarantined, ...againAt };
  };
}

/** The upstream updates candles every five minutes, and its caches keep an answer for a few more (upstream-api.md, 1.1 and 1.4). */
const MOST_DATA_LAG_MS = 15 * 60_000;

type Answered = Pick<Extract<Answer, { kind: 'answered' }>, 'body' | 'exchange'>;

/** Reads the rows of an answer, and records an answer that cannot be used. @throws UpstreamError */
function createRowReader(sql: Sql) {
  const checkDrift = createDriftCheck(sql);
  return async (
    job: ChunkJob,
    sent: SentRequest['record'],
    { body, exchange }: Answered,
    retry: OutageRetry,
  ): Promise<OhlcvRowRead[]> => {
    const read = isPriceInterval(job.interval) ? readPriceRows(body) : readOhlcvRows(body);
    const unusable = read.ok
      ? (answersOtherRequest(job.interval, read.rows, exchange) ?? (await retry(() => checkDrift(job, read.rows))))
      : read.problem;
    if (read.ok && unusable === null) return read.rows;
    const row = { ...sent, outcome: 'malformed', message: unusable };
    await retry((again) => recordFetchOnce(sql, row, again));
    const problem = `the answer cannot be used: ${unusable}`;
    throw new UpstreamError(`${describeChunk(job)}: ${problem}`, problem);
  };
}

/**
 * The as-of instant of an answer. An answer without a credible `Date` contains nothing younger than the data of its open candle, even if our clock is
 * wrong: that candle must not become final. A price does not show whether it is open. So while no answer has had a `Date`, the newest price counts as
 * open, unless the clock would have to be wrong by more than is possible.
 *
 * The data may lag minutes behind a true `Date`. A candle of five minutes that has settled by then, and was open in the data, must not become final.
 */
function knownUntil(
  { date, asOf, isByOurClock }: Exchange,
  { candles, cutShort }: Findings,
  interval: Interval,
): Instant {
  const newest = candles.openTime.at(-1);
  if (newest === undefined) return asOf;
  const last = cutShort.at(-1);
  const open = last?.openTime === newest ? last : undefined;
  if (date !== null) {
    const isBehind = open !== undefined && newest < settledUntil(asOf, interval);
    return isBehind && asOf - open.closeTime <= MOST_DATA_LAG_MS ? open.closeTime : asOf;
  }
  if (isPriceInterval(interval))
    return isByOurClock ? Math.max(asOf - MOST_CLOCK_ERROR_MS, Math.min(asOf, newest)) : asOf;
  return open === undefined ? asOf : Math.min(asOf, open.closeTime);
}
