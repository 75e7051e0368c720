/** Shows progress on standard error: a bar on a terminal, elsewhere a line every few seconds. */
import { type Options, SingleBar } from 'cli-progress';
import type { Clock, Instant } from '../../clock.ts';
import { formatCount, formatCounted, formatRoughly } from '../../core/format.ts';
import { waitingFor } from '../output/wait-reasons.ts';
import type { Output } from '../shell/io.ts';

export type ProgressState = {
  readonly chunksDone: number;
  readonly chunksTotal: number;
  /** Stored so far. */
  readonly candles: number;
  /** Requests that a backfill may still spend in the window that is used up first; null: no limit. */
  readonly quotaLeft: number | null;
  /** Sent so far; more than the chunks that are done where some requests failed. */
  readonly requests: number;
  /** Set while everything waits. */
  readonly waiting: { readonly reason: string; readonly until: Instant } | null;
};

export type Progress = {
  update(state: ProgressState): void;
  /** Shows the last state and gives the terminal back. Safe to call twice. */
  done(): void;
};

const BAR_FPS = 5;
const LINE_EVERY_MS = 5000;
/** The rate is that of the last half minute, so that it follows changes without jitter. */
const RATE_OVER_MS = 30_000;
/** Over less time, or fewer requests, the rate is no basis for an ETA. */
const BASE_MS = 3_000;
const BASE_CHUNKS = 3;
/** After so long without an answer, the line says so. */
const QUIET_MS = 5_000;

/** When the quota allows the given number of requests to have been sent; null when no limit applies. */
export type QuotaForecast = (requests: number) => Instant | null;

export type ProgressSources = {
  readonly forecast: QuotaForecast;
  /** Requests in flight. */
  readonly underWay: () => number;
  /** The time between two requests that the limits demand: a shorter silence is normal. */
  readonly gapMs: number;
};

export function createProgress(err: Output, clock: Clock, sources: ProgressSources): Progress {
  return err.canRedraw ? createBar(err, clock, sources) : createLines(err, clock, sources);
}

function createBar(err: Output, clock: Clock, sources: ProgressSources): Progress {
  const pace = { ...sources, rate: createRate(clock), hasEnded: false };
  let state: ProgressState | null = null;
  const options: Options = {
    stream: err.stream as NodeJS.WritableStream,
    fps: BAR_FPS,
    hideCursor: true,
    clearOnComplete: false,
    gracefulExit: false,
    stopOnComplete: false,
    linewrap: false,
    format: () => (state === null ? '' : barLine(state, pace, clock.now(), err.columns() ?? 80)),
  };
  const bar = new SingleBar(options);
  return {
    update: (next) => {
      pace.rate.add(next);
      const isFirst = state === null;
      state = next;
      if (isFirst) {
        bar.start(next.chunksTotal, next.chunksDone);
        err.setRedrawing(true);
      }
      bar.setTotal(next.chunksTotal);
      bar.update(next.chunksDone);
    },
    done: () => {
      if (state === null) return;
      pace.hasEnded = true;
      bar.stop();
      err.setRedrawing(false);
      state = null;
    },
  };
}

function createLines(err: Output, clock: Clock, sources: ProgressSources): Progress {
  const pace = { ...sources, rate: createRate(clock), hasEnded: false };
  const stop = new AbortController();
  let state: ProgressState | null = null;
  let shown: string | null = null;
  const show = () => {
    if (state === null) return;
    const line = textOf(state, pace, clock.now());
    if (line !== shown) err.write(`${line}\n`);
    shown = line;
  };
  const tick = async () => {
    while (!stop.signal.aborted) {
      await clock.sleep(LINE_EVERY_MS, stop.signal);
      show();
    }
  };
  return {
    update: (next) => {
      pace.rate.add(next);
      const isFirst = state === null;
      state = next;
      if (!isFirst) return;
      show();
      // Ends by being aborted, which is no failure.
      tick().catch(() => undefined);
    },
    done: () => {
      if (stop.signal.aborted) return;
      stop.abort();
      pace.hasEnded = true;
      show();
    },
  };
}

type Rate = {
  add(state: ProgressState): void;
  /** Per second, of the last half minute; null until there is something to go by. */
  candles(): number | null;
  chunks(): number | null;
  /** Time since the last answer. */
  quietMs(): number;
};

function createRate(clock: Clock): Rate {
  const samples: { at: Instant; candles: number; chunks: number }[] = [];
  let heardAt = clock.now();
  let heard: ProgressState | null = null;
  return {
    add: (state) => {
      const { candles, chunksDone } = state;
      const at = clock.now();
      if (heard === null || isNews(state, heard)) heardAt = at;
      heard = state;
      // At most five samples a second are kept.
      if (samples.length > 1 && at - samples.at(-2)!.at < 200) samples.pop();
      samples.push({ at: samples.length === 0 ? at : Math.max(at, samples.at(-1)!.at), candles, chunks: chunksDone });
      // One sample older than the window stays, so that the window is full.
      while (samples.length > 1 && samples[1]!.at < at - RATE_OVER_MS) samples.shift();
    },
    candles: () => perSecond('candles', { leastMs: 1000, least: 1 }),
    chunks: () => perSecond('chunks', { leastMs: BASE_MS, least: BASE_CHUNKS }),
    quietMs: () => clock.now() - heardAt,
  };
  function perSecond(
    what: 'candles' | 'chunks',
    { leastMs, least }: { readonly leastMs: number; readonly least: number },
  ): number | null {
    const [first, last] = [samples[0], samples.at(-1)];
    if (first === undefined || last === undefined) return null;
    const ms = clock.now() - first.at;
    const count = last[what] - first[what];
    return ms < leastMs || count < least ? null : count / (ms / 1000);
  }
}

function isNews(now: ProgressState, before: ProgressState): boolean {
  return (
    now.chunksDone !== before.chunksDone ||
    now.requests !== before.requests ||
    now.candles !== before.candles ||
    now.waiting?.until !== before.waiting?.until
  );
}

/** What the ETA is computed from. */
type Pace = ProgressSources & { readonly rate: Rate; readonly hasEnded: boolean };

/** The parts of a line; empty where a part does not apply. */
function partsOf(state: ProgressState, pace: Pace, now: Instant) {
  const { candles, quotaLeft, waiting } = state;
  const quiet = quietText(state, pace);
  const speed = waiting === null && quiet === '' ? pace.rate.candles() : null;
  const wait = waiting === null ? '' : `waits ${formatRoughly(waiting.until - now)}`;
  return {
    requests: requestsText(state, pace),
    candles: formatCounted(candles, 'candle'),
    speed: speed === null ? '' : `${formatCount(speed)}/s`,
    quota: quotaLeft === null ? '' : `quota left ${formatCount(quotaLeft)}`,
    end: waiting === null ? quiet || etaText(state, pace, now) : wait,
    why: waiting === null ? '' : waitingFor(waiting.reason),
  };
}

/** The plan is done, but requests go on: what is left is unknown, so no total is shown. */
function isBeyondPlan({ chunksDone, chunksTotal }: ProgressState, { hasEnded, underWay }: Pace): boolean {
  return !hasEnded && chunksTotal > 0 && chunksDone >= chunksTotal && underWay() > 0;
}

function requestsText(state: ProgressState, pace: Pace): string {
  const { chunksDone, chunksTotal } = state;
  if (isBeyondPlan(state, pace)) return `${formatCounted(chunksDone, 'request')}, more than planned`;
  return `${formatCount(chunksDone)} of ${formatCounted(chunksTotal, 'request')}`;
}

/** Replaces rate and ETA while no answers arrive. */
function quietText({ waiting }: ProgressState, { rate, hasEnded, underWay, gapMs }: Pace): string {
  const ms = rate.quietMs();
  if (hasEnded || waiting !== null || underWay() === 0 || ms < Math.max(QUIET_MS, 3 * gapMs)) return '';
  return `waits for ${formatCounted(underWay(), 'answer')}, none for ${formatRoughly(ms)}`;
}

/**
 * The ETA by the present rate, and never earlier than the quota allows. Empty until one of them is known, as an estimate from the first
 * answers is wrong by hours.
 */
function etaText({ chunksDone, chunksTotal, requests }: ProgressState, pace: Pace, now: Instant): string {
  const left = chunksTotal - chunksDone;
  if (left <= 0) return '';
  const perSecond = pace.rate.chunks();
  const byRate = perSecond === null ? 0 : (left / perSecond) * 1000;
  const byQuota = (pace.forecast(requests + left) ?? now) - now;
  const ms = Math.max(byRate, byQuota);
  return ms <= 0 ? '' : `${formatRoughly(ms)} to go`;
}

function joined(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(', ');
}

function textOf(state: ProgressState, pace: Pace, now: Instant): string {
  const { requests, candles, speed, quota, end, why } = partsOf(state, pace, now);
  return joined(requests, candles, speed, quota, why === '' ? end : `${end}: ${why}`);
}

const LEAST_BAR = 10;
const WIDEST_BAR = 40;

/** One line that fits the terminal: the least important parts are dropped first; while requests wait, that is the bar. */
function barLine(state: ProgressState, pace: Pace, now: Instant, columns: number): string {
  const { chunksDone, chunksTotal } = state;
  const most = isBeyondPlan(state, pace) ? 0.99 : 1;
  const share = chunksTotal === 0 ? 1 : Math.min(most, chunksDone / chunksTotal);
  const { requests, candles, speed, quota, end, why } = partsOf(state, pace, now);
  const ending = why === '' ? end : `${end}: ${why}`;
  const leastBar = why === '' ? LEAST_BAR : 0;
  const room = columns - 1;
  const texts = [
    joined(requests, candles, speed, quota, ending),
    joined(requests, speed, quota, ending),
    joined(requests, quota, ending),
    joined(requests, ending),
    joined(requests, quota, end),
    joined(requests, end),
  ].map((text) => ` ${Math.floor(share * 100)}%  ${text}`);
  const fitting =
    texts.find((text) => text.length + leastBar <= room) ?? texts.find((text) => text.length <= room) ?? texts.at(-1)!;
  const width = Math.min(WIDEST_BAR, room - fitting.length);
  if (width < LEAST_BAR) return fitting.trimStart().slice(0, room);
  const full = Math.round(share * width);
  return `${'█'.repeat(full)}${'░'.repeat(width - full)}${fitting}`;
}
