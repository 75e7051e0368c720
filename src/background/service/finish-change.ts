/** Why a backfill will be done at another time than was forecast: the largest of the changes that explain it. */
import type { Instant } from '../../clock.ts';
import { formatCounted, formatInstant, formatRate } from '../../core/format.ts';
import { type BackfillFinish, type FinishBasis, UNKNOWN_FINISH } from '../../store/backfill/backfill-finish.ts';

/** A forecast before it is compared with the one that was shown. */
export type Forecasted = {
  readonly at: Instant;
  readonly from: Instant;
  readonly to: Instant;
  readonly basis: Omit<FinishBasis, 'from' | 'to'>;
};

/**
 * The forecast to show now. The shown range stays while the forecast is within it, and becomes narrower with the forecast. When the
 * forecast leaves the range, this returns a new range and the reason.
 */
export function finishToShow(shown: BackfillFinish, next: Forecasted | null): BackfillFinish {
  if (next === null) return { ...UNKNOWN_FINISH, change: shown.change, changedAt: shown.changedAt };
  const { at, from, to } = next;
  const now = { at, from, to, basis: { ...next.basis, from, to } };
  const { basis } = shown;
  if (basis === null) return { ...shown, ...now };
  if (at < basis.from || at > basis.to) {
    const change = changeOf(basis, now.basis, at > basis.to);
    return { ...now, change, changedAt: next.basis.madeAt };
  }
  // The basis stays: if the forecast leaves the range later, what has changed since the range was made explains that.
  return from >= basis.from && to <= basis.to
    ? { ...shown, at, from, to, basis: { ...basis, from, to } }
    : { ...shown, at };
}

/** The reason in words. `isLater`: the new forecast is later than the shown one. */
function changeOf(old: FinishBasis, now: FinishBasis, isLater: boolean): string {
  const sign = isLater ? 1 : -1;
  const perRequest = now.gapMs * now.perChunk;
  const work = now.left + sum(Object.values(now.others));
  const causes: (readonly [effectMs: number, text: string])[] = [
    ...othersChanged(old, now).map(([requests, text]) => [sign * requests * perRequest, text] as const),
    [sign * (now.left - old.left) * perRequest, `it needs ${formatCounted(now.left, 'request')} more, not ${old.left}`],
    // A change that reads the same in words is no cause.
    [rateOf(now) === rateOf(old) ? 0 : sign * (now.gapMs - old.gapMs) * now.perChunk * work, paceChanged(old, now)],
    [
      eachOf(now) === eachOf(old) ? 0 : sign * (now.perChunk - old.perChunk) * now.gapMs * work,
      failuresChanged(old, now),
    ],
    [isLater && now.window !== old.window ? windowEffectMs(now) : 0, windowChanged(now)],
    [isLater ? holdEffectMs(old, now) : 0, holdChanged(now)],
  ];
  // The remaining work always shrinks, so it is no reason to be done earlier than forecast.
  const possible = isLater ? causes : causes.filter(([, text]) => !text.startsWith('it needs'));
  const [effectMs, text] = possible.reduce((a, b) => (b[0] > a[0] ? b : a));
  if (effectMs > 0) return text;
  return isLater ? 'it got fewer requests than was forecast' : 'it got more requests than was forecast';
}

/** Requests of other backfills that were added before it (positive) or will not be sent before it. The forecast included what they sent meanwhile. */
function othersChanged(old: FinishBasis, now: FinishBasis): (readonly [requests: number, text: string])[] {
  const before = new Set(Object.keys(old.others));
  const more = Object.entries(now.others).map(([id, requests]) => {
    const text = before.has(id)
      ? `backfill ${id} takes more turns before it`
      : `backfill ${id} goes before it or takes turns with it`;
    return [requests - (old.others[id] ?? 0), text] as const;
  });
  const gone = [...before].filter((id) => now.others[id] === undefined);
  return [
    ...more.filter(([requests]) => requests > 0),
    ...gone.map((id) => [-old.others[id]!, `backfill ${id} no longer goes before it`] as const),
  ];
}

function rateOf({ gapMs }: FinishBasis): string {
  return formatRate(1_000 / Math.max(1, gapMs));
}

function paceChanged(old: FinishBasis, now: FinishBasis): string {
  return `backfills get ${rateOf(now)}, not ${rateOf(old)}`;
}

function failuresChanged(old: FinishBasis, now: FinishBasis): string {
  return `${now.perChunk > old.perChunk ? 'more' : 'fewer'} requests fail: ${eachOf(now)} for each chunk, not ${eachOf(old)}`;
}

function eachOf({ perChunk }: FinishBasis): string {
  return perChunk.toFixed(2);
}

/** A window that must end first matters more than any effect of the pace. */
function windowEffectMs({ window }: FinishBasis): number {
  return window === 'month' ? 2 ** 40 : window === 'day' ? 2 ** 39 : 0;
}

function windowChanged({ window }: FinishBasis): string {
  return `the requests of the ${window} that backfills may send are too few to be done before it ends`;
}

function holdEffectMs(old: FinishBasis, now: FinishBasis): number {
  return now.hold === null ? 0 : Math.max(0, now.hold.until - Math.max(now.madeAt, old.hold?.until ?? 0));
}

function holdChanged({ hold }: FinishBasis): string {
  return hold === null ? '' : `${hold.reason}, until ${formatInstant(hold.until)}`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
