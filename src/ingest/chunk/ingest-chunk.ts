/**
 * The heart: one chunk = one request = one unit of quota = one transaction. It can be run again at any time: it first looks
 * what is still missing, asks only for that, and what it learns becomes true together or not at all.
 */
import type { Clock, Instant } from '../../clock.ts';
import { ohlcvParameters, ohlcvPath } from '../../contract/interface/paths.ts';
import type { Plan } from '../../contract/plan/plans.ts';
import { readOhlcvRows } from '../../contract/record/ohlcv.ts';
import { INTERVAL_MS } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import type { Quota, Spender, Stretch } from '../../quota/quota.ts';
import { storeChunk } from '../../store/candle/chunk.ts';
import { type RefusalReason, recordRefusal } from '../../store/candle/refusal.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { createPartitionKeeper, type PartitionKeeper } from '../../store/upkeep/partition.ts';
import { findFetch, recordFetchOnce } from '../../store/work/fetch.ts';
import type { Answer } from '../../upstream/answer.ts';
import { createDriftCheck, type DriftCheck } from '../answer/schema-drift.ts';
import { createDoubts } from '../answer/second-opinion.ts';
import {
  documentedWall,
  earliestSlot,
  isBeyond,
  knownDepth,
  provesOpen,
  unprovenPart,
} from '../limits/history-limit.ts';
import type { Walls } from '../limits/learned-limits.ts';
import { createWallDoubts, type WallDoubts } from '../limits/limit-second-opinion.ts';
import { depthOf } from '../limits/parsed-limit.ts';
import { INTERRUPTED, LedAround, Misconfigured, type Outcome, UpstreamTrouble } from '../outcome.ts';
import { type ChunkJob, FRESHNESS } from '../queue/chunk-job.ts';
import { wrongAddress, wrongKey } from '../request/configuration-errors.ts';
import { createOriginCheck, type OriginCheck } from '../request/origin.ts';
import { impatient, type Patience } from '../request/outage-retry.ts';
import type { Ask, Asked } from '../request/send-request.ts';
import { createTurnsAhead, type TakeTurns } from '../turns-ahead.ts';
import { weigh } from './evidence.ts';
import { examine } from './validate.ts';

export type IngestChunkDeps = {
  readonly sql: Sql;
  readonly ask: Ask;
  /** The one that `ask` takes from. */
  readonly quota: Quota;
  readonly clock: Clock;
  readonly plan: Plan;
  readonly walls: Walls;
  /** Has this upstream ever given us something usable? Until then a refusal may be a wrong key or address. */
  readonly trust: { readonly proven: boolean; prove(): void };
};

export type IngestChunk = (
  job: ChunkJob,
  options?: {
    readonly attempt?: number;
    readonly signal?: AbortSignal;
    /** For a database that is away; without it the chunk is an exception like any other, and what was answered is asked again. */
    readonly patience?: Patience;
  },
) => Promise<Outcome>;

const NOTHING: Outcome = { kind: 'stored', requests: 0, stored: 0, revised: 0, setAside: 0 };
const ALL_TIME: Span = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };

/** `takeTurns` may be told of chunks that `ingestChunk` is about to be called with, the same objects, one after the other. */
export type ChunkIngestion = { readonly ingestChunk: IngestChunk; readonly takeTurns: TakeTurns };

export function createIngestChunk(deps: IngestChunkDeps): ChunkIngestion {
  const { sql, ask, quota, clock, plan } = deps;
  const doubts = createDoubts();
  const wallDoubts = createWallDoubts(deps);
  const storing: StoreDeps = {
    ...deps,
    wallDoubts,
    checkDrift: createDriftCheck(sql),
    checkOrigin: createOriginCheck(sql),
    keepPartitions: createPartitionKeeper(sql),
  };
  const turnsAhead = createTurnsAhead({ quota, spenderOf, stretchOf });
  const ingest: IngestChunk = async (job, { attempt = 1, signal, patience = impatient } = {}) => {
    const soon = doubts.waitingFor(job, clock.now()) ?? wallDoubts.waitingFor(job);
    if (soon !== null) return { kind: 'deferred', until: soon, requests: 0, reason: 'doubt' };
    const stretch = stretchOf(job);
    if (stretch === null) return NOTHING;
    const asked = await ask(
      {
        stretch,
        ahead: turnsAhead.of(job, stretch),
        about: (gaps) => questionAbout(job, { from: gaps[0]!.from, to: gaps.at(-1)!.to }),
      },
      {
        spender: spenderOf(job),
        record: { endpoint: 'ohlcv', seriesId: job.seriesId, backfillId: backfillOf(job), attempt },
        signal,
        patience,
      },
    ).catch((error: unknown) => {
      // Interrupted while waiting for a turn: nothing was sent, the chunk goes back as it came.
      if (signal?.aborted) return { kind: 'held', until: clock.now(), reason: INTERRUPTED } as const;
      throw error;
    });
    if (asked.kind === 'unwanted') return NOTHING;
    if (asked.kind === 'held') return { kind: 'snoozed', until: asked.until, reason: asked.reason };
    const { answer } = asked;
    const span = asked.record.span!;
    switch (answer.kind) {
      case 'answered':
        doubts.answered(job);
        return storeAnswer(storing, job, span, asked, answer, patience);
      case 'limited': {
        const again = asked.budgetLeft ? doubts.doubt(job, answer.exchange.sentAt, clock.now()) : null;
        if (again !== null) return { kind: 'deferred', until: again, requests: asked.requests, reason: 'doubt' };
        if (asked.budgetLeft) return patience(() => refused(deps, job, span, asked, asWall(answer)));
        // The ledger makes everybody wait; the next take says until when.
        return { kind: 'snoozed', until: clock.now(), reason: answer.by === 'pace' ? 'limited' : 'spent' };
      }
      case 'refused': {
        const meaning = answer.reason === 'wall' ? wallDoubts.weigh(job, span, answer) : 'as it says';
        if (typeof meaning === 'number')
          return { kind: 'deferred', until: meaning, requests: asked.requests, reason: 'doubt' };
        return patience(() => refused(deps, job, span, asked, answer, meaning === 'span'));
      }
      case 'malformed':
        if (answer.astray && !deps.trust.proven) throw new Misconfigured(wrongAddress(answer.message));
        throw new (asked.ledAround ? LedAround : UpstreamTrouble)(`${describe(job)}: ${answer.message}`);
      case 'unavailable':
        throw new UpstreamTrouble(`${describe(job)}: ${answer.message}`);
    }
  };
  const ingestChunk: IngestChunk = async (job, options) => {
    let isWell = false;
    try {
      const outcome = await wallDoubts.inTurn(job, () => ingest(job, options));
      isWell = outcome.kind === 'stored';
      return outcome;
    } finally {
      if (isWell) turnsAhead.ended(job);
      else turnsAhead.distrust();
    }
  };
  return { ingestChunk, takeTurns: turnsAhead.take };

  /** Of a chunk what lies within the wall, which moves on while the chunk waits in the queue. */
  function stretchOf(job: ChunkJob): Stretch | null {
    const earliest = earliestSlot(knownDepth(deps.walls.of(job.interval)), job.interval, clock.now());
    const from = Math.max(job.from, earliest);
    if (from >= job.to) return null;
    return { ...job, backfillId: backfillOf(job), span: { from, to: job.to }, plan: plan.name };
  }

  function questionAbout(job: ChunkJob, span: Span) {
    return {
      path: ohlcvPath(job.coinId),
      query: ohlcvParameters(toQuestion(job, span, plan)),
      span,
      beyondPlan: isBeyond(documentedWall(plan, job.interval), job.interval, span.from, clock.now()),
    };
  }
}

function spenderOf(job: ChunkJob): Spender {
  return job.kind === 'freshness'
    ? { class: 'scheduled', name: FRESHNESS }
    : { class: 'backfill', name: `backfill ${job.backfillId}` };
}

function backfillOf(job: ChunkJob): number | null {
  return job.kind === 'freshness' ? null : job.backfillId;
}

function toQuestion(job: ChunkJob, span: Span, plan: Plan) {
  // Both ends are open times and both are answered (decision: ends are inclusive).
  const to = span.to - INTERVAL_MS[job.interval];
  return { from: span.from, to, interval: job.interval, quote: job.quote, limit: plan.candlesPerRequest };
}

type StoreDeps = IngestChunkDeps & {
  readonly wallDoubts: WallDoubts;
  readonly checkDrift: DriftCheck;
  readonly checkOrigin: OriginCheck;
  readonly keepPartitions: PartitionKeeper;
};

async function storeAnswer(
  { sql, plan, walls, trust, wallDoubts, checkDrift, checkOrigin, keepPartitions }: StoreDeps,
  job: ChunkJob,
  span: Span,
  { record, requests }: Extract<Asked, { kind: 'asked' }>,
  { body, exchange }: Extract<Answer, { kind: 'answered' }>,
  patience: Patience,
): Promise<Outcome> {
  const { interval, coinId } = job;
  const read = readOhlcvRows(body);
  const unusable = read.ok ? await patience(() => checkDrift(job.seriesId, read.rows)) : read.problem;
  if (!read.ok || unusable !== null) {
    const row = { ...record, outcome: 'malformed', message: unusable };
    await patience((again) => recordFetchOnce(sql, row, again));
    throw new UpstreamTrouble(`${describe(job)}: the answer cannot be read: ${unusable}`);
  }
  trust.prove();
  await patience(() => checkOrigin(exchange)).catch(async (error: Error) => {
    const row = { ...record, outcome: 'malformed', message: error.message };
    if (error instanceof Misconfigured) await patience((again) => recordFetchOnce(sql, row, again));
    throw error;
  });
  const findings = examine({ coinId, interval, span }, read.rows, exchange.latest);
  // Thousands of small objects that nobody needs any more: waiting here for the database, they would outlive the young generation.
  read.rows.length = 0;
  if (Array.isArray(body)) body.length = 0;
  const { sentAt, asOf, ageMs } = exchange;
  // Only where there are candles: of what is asked, a coin may have existed in the last few years only.
  const { openTime } = findings.candles;
  wallDoubts.answered(job, openTime[0] ?? null, sentAt);
  if (openTime.length > 0) {
    const filled = { from: openTime[0]!, to: openTime.at(-1)! + INTERVAL_MS[interval] };
    await patience(() => keepPartitions(interval, filled));
  }
  // Only a candle from beyond proves that the wall is not there: nothing at all may be the wall's way of saying so.
  if (openTime.length > 0 && provesOpen(walls.of(interval), interval, openTime[0]!, asOf))
    await patience(() => walls.open(interval));
  const unproven = unprovenPart(walls.of(interval), interval, span, exchange.latest);
  const store = () =>
    storeChunk(
      sql,
      {
        series: { id: job.seriesId, interval },
        span,
        asOf,
        candles: findings.candles,
        open: findings.cutShort.filter(({ openTime }) => openTime + INTERVAL_MS[interval] > asOf),
        setAside: findings.setAside,
        fetch: { ...record, outcome: 'stored', rows: findings.rowCount },
      },
      (known) =>
        weigh({ span, interval, findings, sentAt, asOf, ageMs, limit: plan.candlesPerRequest, known, unproven }),
    );
  // Cut off while it was committed, it may be stored already.
  const counts = await patience(async (again) => (again ? await findFetch(sql, record) : null) ?? store());
  // As above: what is done is found by a full collection only, and what hangs on it with it (store/lost-connection.ts).
  for (const column of Object.values(findings.candles)) column.length = 0;
  return { kind: 'stored', requests, stored: counts.stored, revised: counts.revised, setAside: counts.setAside };
}

/** A second 402 without a wall's text: it is taken for one. */
function asWall({ exchange, message }: Extract<Answer, { kind: 'limited' }>): Refused {
  return { kind: 'refused', reason: 'wall', notBefore: null, message, exchange };
}

type Refused = Extract<Answer, { kind: 'refused' }>;

async function refused(
  { sql, clock, walls, plan, trust }: IngestChunkDeps,
  job: ChunkJob,
  span: Span,
  { fetchId, keySent }: Extract<Asked, { kind: 'asked' }>,
  answer: Refused,
  onlyHere = false,
): Promise<Outcome> {
  const { message } = answer;
  const remember = (reason: RefusalReason, of: Span) =>
    recordRefusal(sql, {
      plan: plan.name,
      seriesId: job.seriesId,
      span: of,
      reason,
      message,
      refusedAt: clock.now(),
      fetchId,
    });
  switch (answer.reason) {
    case 'wall': {
      trust.prove();
      if (onlyHere) {
        await remember('plan wall', span);
        return { kind: 'refused', reason: 'plan wall', message };
      }
      const depth = depthOf(job.interval, span, plan, answer);
      await walls.meet(job.interval, { ...depth, message, fetchId });
      return { kind: 'refused', reason: depth.depthMs === 0 ? 'interval' : 'plan wall', message };
    }
    case 'unknown id':
      // All of its chunks would be answered alike.
      await remember('unknown coin', ALL_TIME);
      return { kind: 'refused', reason: 'unknown coin', message };
    case 'forbidden':
      if (!trust.proven) throw new Misconfigured(wrongKey(message, keySent));
      await remember('forbidden', ALL_TIME);
      return { kind: 'refused', reason: 'forbidden', message };
    case 'unknown route':
      if (!trust.proven) throw new Misconfigured(wrongAddress(message));
      throw new UpstreamTrouble(`${describe(job)}: ${message}`);
    case 'bad request':
      await remember('bad request', span);
      return { kind: 'refused', reason: 'bad request', message };
  }
}

function describe(job: ChunkJob): string {
  const day = (at: Instant) => new Date(at).toISOString().slice(0, 10);
  return `${job.coinId} ${job.interval} ${day(job.from)}…${day(job.to)}`;
}
