/** How far a long command is: a bar on a terminal, a line every few seconds elsewhere. Both write to standard error. */
import { type Options, SingleBar } from 'cli-progress';
import type { Clock, Instant } from '../../clock.ts';
import { formatCount, formatCounted, formatRoughly } from '../output/format.ts';
import { waitingFor } from '../output/wait-reasons.ts';
import type { Output } from '../shell/io.ts';

export type ProgressState = {
  readonly chunksDone: number;
  readonly chunksTotal: number;
  /** Stored so far. */
  readonly candles: number;
  /** Requests a backfill may still spend in its narrowest window; null = no limit. */
  readonly quotaLeft: number | null;
  /** Sent so far; more than chunks where some failed, fewer where one answer settled several. */
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
/** The rate shown is that of the last half minute: it follows what happens without trembling. */
const RATE_OVER_MS = 30_000;
/** Shorter than this, or with fewer requests, it says nothing about the rest. */
const BASE_MS = 3_000;
const BASE_CHUNKS = 3;
/** Nothing answered for so long is worth saying. */
const QUIET_MS = 5_000;

/** When so many requests since the beginning will have been sent, by the quota; null where the quota says nothing about it. */
export type QuotaForecast = (requests: number) => Instant | null;

export type ProgressSources = {
  readonly forecast: QuotaForecast;
  /** Chunks being asked for now. */
  readonly underWay: () => number;
  /** Between two requests, by the limits: silence is nothing strange before. */
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
  /** How long nothing has been answered. */
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
      // Often told, seldom kept: the latest replaces the one before it while that is younger than a fifth of a second.
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

/** What the time that is left is told from. */
type Pace = ProgressSources & { readonly rate: Rate; readonly hasEnded: boolean };

/** The parts of a line; empty where there is nothing to say. */
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

/** What was planned has been done and it goes on: how much is left is not known, and no total is claimed. */
function isBeyondPlan({ chunksDone, chunksTotal }: ProgressState, { hasEnded, underWay }: Pace): boolean {
  return !hasEnded && chunksTotal > 0 && chunksDone >= chunksTotal && underWay() > 0;
}

function requestsText(state: ProgressState, pace: Pace): string {
  const { chunksDone, chunksTotal } = state;
  if (isBeyondPlan(state, pace)) return `${formatCounted(chunksDone, 'request')}, more than planned`;
  return `${formatCount(chunksDone)} of ${formatCounted(chunksTotal, 'request')}`;
}

/** Rates of what was say nothing about answers that do not come. */
function quietText({ waiting }: ProgressState, { rate, hasEnded, underWay, gapMs }: Pace): string {
  const ms = rate.quietMs();
  if (hasEnded || waiting !== null || underWay() === 0 || ms < Math.max(QUIET_MS, 3 * gapMs)) return '';
  return `waits for ${formatCounted(underWay(), 'answer')}, none for ${formatRoughly(ms)}`;
}

/**
 * How long it takes yet: by the rate so far, and never less than the quota allows. Nothing until one of them says something:
 * a guess from the first answers is wrong by hours.
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

/** One line that fits: what matters least goes first where there is no room for all of it; while all waits, that is the bar. */
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
