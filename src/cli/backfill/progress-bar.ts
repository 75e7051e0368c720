/** Shows progress on standard error: as a bar on a terminal, otherwise as a line every few seconds. */
import { SingleBar } from 'cli-progress';
import { waitingFor } from '../../background/operator/wait-reasons.ts';
import type { Clock, Instant } from '../../clock.ts';
import { formatCount, formatCounted, formatRoughly } from '../../core/format.ts';
import { ANOTHER_PROCESS } from '../../ingest/backfill/progress.ts';
import type { Output } from '../shell/io.ts';

export type ProgressState = {
  readonly chunksDone: number;
  readonly chunksTotal: number;
  /** Rows stored so far: candles, or prices. */
  readonly candles: number;
  readonly noun: 'candle' | 'price';
  /** Requests that a backfill may still send in the window that is used up first. Null when there is no limit. */
  readonly quotaLeft: number | null;
  /** Requests sent so far. When some fail, this exceeds the number of chunks that are done. */
  readonly requests: number;
  /** Set while all requests wait. */
  readonly waiting: { readonly reason: string; readonly until: Instant } | null;
};

type Progress = {
  update(state: ProgressState): void;
  /** Shows the last state and releases the terminal. Safe to call twice. */
  done(): void;
};

const BAR_FPS = 5;
const LINE_EVERY_MS = 5000;
/** The rate is the mean of the last half minute, so it follows changes without jumping. */
const RATE_OVER_MS = 30_000;
/** After so long without an answer, the line reports that. */
const QUIET_MS = 5_000;

/** When the quota allows the given number of requests to have been sent. Null when no limit delays them. */
export type QuotaForecast = (requests: number) => Instant | null;

type ProgressSources = {
  readonly forecast: QuotaForecast;
  /** Number of requests in flight. */
  readonly underWay: () => number;
  /** The time between two requests that the limits demand, in milliseconds. A shorter silence is normal. */
  readonly gapMs: number;
};

export function createProgress(err: Output, clock: Clock, sources: ProgressSources): Progress {
  const measured: Measured = { ...sources, rate: createRate(clock), hasEnded: false };
  let state: ProgressState | null = null;
  const display = err.canRedraw
    ? createBar(err, () => (state === null ? '' : barLine(state, measured, clock.now(), err.columns() ?? 80)))
    : createLines(err, clock, () => (state === null ? '' : textOf(state, measured, clock.now())));
  return {
    update: (next) => {
      measured.rate.add(next);
      const isFirst = state === null;
      state = next;
      if (isFirst) display.start();
    },
    done: () => {
      if (state === null || measured.hasEnded) return;
      measured.hasEnded = true;
      display.stop();
    },
  };
}

/** Shows a line of text that changes all the time. */
type Display = {
  start(): void;
  stop(): void;
};

function createBar(err: Output, line: () => string): Display {
  const bar = new SingleBar({
    stream: err.stream as NodeJS.WritableStream,
    fps: BAR_FPS,
    hideCursor: true,
    gracefulExit: false,
    linewrap: false,
    format: line,
  });
  return {
    start: () => {
      // The line contains everything, so the library needs no numbers.
      bar.start(0, 0);
      err.setRedrawing(true);
    },
    stop: () => {
      bar.stop();
      err.setRedrawing(false);
    },
  };
}

/** Writes the line at the start, every few seconds when it has changed, and at the end. */
function createLines(err: Output, clock: Clock, line: () => string): Display {
  const stopped = new AbortController();
  let shown = '';
  const show = () => {
    const next = line();
    if (next !== shown) err.write(`${next}\n`);
    shown = next;
  };
  const showRepeatedly = async () => {
    while (!stopped.signal.aborted) {
      show();
      await clock.sleep(LINE_EVERY_MS, stopped.signal);
    }
  };
  return {
    // Aborting is the normal way to end it, and no failure.
    start: () => void showRepeatedly().catch(() => undefined),
    stop: () => {
      stopped.abort();
      show();
    },
  };
}

type Rate = {
  add(state: ProgressState): void;
  /** Rows per second over the last half minute. Null while there are too few answers. */
  candles(): number | null;
  chunks(): number | null;
  /** Milliseconds since the last answer. */
  quietMs(): number;
};

function createRate(clock: Clock): Rate {
  const samples: { at: Instant; candles: number; chunks: number }[] = [];
  let changedAt = clock.now();
  let last = '';
  return {
    add: ({ candles, chunksDone, requests, waiting }) => {
      const at = clock.now();
      const state = [candles, chunksDone, requests, waiting?.until].join();
      if (state !== last) changedAt = at;
      last = state;
      // Keeps at most five samples a second.
      if (samples.length > 1 && at - samples.at(-2)!.at < 200) samples.pop();
      samples.push({ at: samples.length === 0 ? at : Math.max(at, samples.at(-1)!.at), candles, chunks: chunksDone });
      // Keeps one sample older than the window, so that the samples cover all of it.
      while (samples.length > 1 && samples[1]!.at < at - RATE_OVER_MS) samples.shift();
    },
    // An ETA from fewer requests, or from a shorter time, would be wrong by hours.
    candles: () => perSecond('candles', 1000, 1),
    chunks: () => perSecond('chunks', 3000, 3),
    quietMs: () => clock.now() - changedAt,
  };
  function perSecond(what: 'candles' | 'chunks', leastMs: number, least: number): number | null {
    const [first, newest] = [samples[0], samples.at(-1)];
    if (first === undefined || newest === undefined) return null;
    const ms = clock.now() - first.at;
    const count = newest[what] - first[what];
    return ms < leastMs || count < least ? null : count / (ms / 1000);
  }
}

/** The inputs of the rate and the ETA. */
type Measured = ProgressSources & { readonly rate: Rate; hasEnded: boolean };

/** The parts of a line. A part that does not apply is empty. */
function partsOf(state: ProgressState, measured: Measured, now: Instant) {
  const { candles, quotaLeft, waiting } = state;
  const quiet = quietText(state, measured);
  const speed = waiting === null && quiet === '' ? measured.rate.candles() : null;
  // Nobody knows when the other process will be done.
  const most = waiting?.reason === ANOTHER_PROCESS ? 'up to ' : '';
  const wait = waiting === null ? '' : `waits ${most}${formatRoughly(waiting.until - now)}`;
  return {
    requests: requestsText(state, measured),
    candles: formatCounted(candles, state.noun),
    speed: speed === null ? '' : `${formatCount(speed)}/s`,
    quota: quotaLeft === null ? '' : `quota left ${formatCount(quotaLeft)}`,
    end: waiting === null ? quiet || etaText(state, measured, now) : wait,
    why: waiting === null ? '' : waitingFor(waiting.reason),
  };
}

/** The planned requests are done, but more follow. How many are left is unknown, so the line shows no total. */
function isBeyondPlan({ chunksDone, chunksTotal }: ProgressState, { hasEnded, underWay }: Measured): boolean {
  return !hasEnded && chunksTotal > 0 && chunksDone >= chunksTotal && underWay() > 0;
}

function requestsText(state: ProgressState, measured: Measured): string {
  const { chunksDone, chunksTotal } = state;
  if (isBeyondPlan(state, measured)) return `${formatCounted(chunksDone, 'request')}, more than planned`;
  return `${formatCount(chunksDone)} of ${formatCounted(chunksTotal, 'request')}`;
}

/** Replaces rate and ETA while no answers arrive. */
function quietText({ waiting }: ProgressState, { rate, hasEnded, underWay, gapMs }: Measured): string {
  const ms = rate.quietMs();
  if (hasEnded || waiting !== null || underWay() === 0 || ms < Math.max(QUIET_MS, 3 * gapMs)) return '';
  return `waits for ${formatCounted(underWay(), 'answer')}, none for ${formatRoughly(ms)}`;
}

/** The ETA at the present rate, but never earlier than the quota allows. Empty until one of them is known. */
function etaText({ chunksDone, chunksTotal, requests }: ProgressState, measured: Measured, now: Instant): string {
  const left = chunksTotal - chunksDone;
  if (left <= 0) return '';
  const perSecond = measured.rate.chunks();
  const byRate = perSecond === null ? 0 : (left / perSecond) * 1000;
  const byQuota = (measured.forecast(requests + left) ?? now) - now;
  const ms = Math.max(byRate, byQuota);
  return ms <= 0 ? '' : `${formatRoughly(ms)} to go`;
}

function joined(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(', ');
}

function textOf(state: ProgressState, measured: Measured, now: Instant): string {
  const { requests, candles, speed, quota, end, why } = partsOf(state, measured, now);
  return joined(requests, candles, speed, quota, why === '' ? end : `${end}: ${why}`);
}

const LEAST_BAR = 10;
const WIDEST_BAR = 40;

/** One line that fits the terminal. It drops the least important parts first; while requests wait, that is the bar. */
function barLine(state: ProgressState, measured: Measured, now: Instant, columns: number): string {
  const { chunksDone, chunksTotal } = state;
  const most = isBeyondPlan(state, measured) ? 0.99 : 1;
  const share = chunksTotal === 0 ? 1 : Math.min(most, chunksDone / chunksTotal);
  const { requests, candles, speed, quota, end, why } = partsOf(state, measured, now);
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
