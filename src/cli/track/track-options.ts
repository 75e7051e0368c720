/** Turns the options of `chandler track` into rules. Pure. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import { ALL_INTERVALS, DAY, floorToGrid, type Interval, widthOf } from '../../core/interval.ts';
import { DEFAULT_PRIORITY, defaultTargetAgeMs } from '../../core/tier.ts';
import type { TrackedCoins, TrackRule } from '../../store/tracking/track-rule.ts';
import { intervalOf, parseWidth, type SeriesKind, type Width } from '../input/options.ts';
import { checkCoins, intervalsOf } from '../input/series-options.ts';
import { parseDuration, pastOption } from '../input/time.ts';
import { UsageError } from '../shell/exit.ts';

/** One value of `--target-age`: for one interval or, when `interval` is null, for all of them. */
type TargetAge = { readonly interval: Width | null; readonly ms: number };

export type TrackOptions = {
  readonly top?: number;
  readonly all?: boolean;
  readonly series: SeriesKind;
  readonly interval?: readonly Width[];
  readonly quote: Quote;
  readonly since?: string;
  readonly priority?: number;
  readonly targetAge?: readonly TargetAge[];
};

const SHORTEST_AGE_MS = 60_000;

/** `36h` for all intervals, or `1h=3h` for hourly candles. */
export function parseTargetAge(text: string): TargetAge {
  const at = text.indexOf('=');
  const interval = at === -1 ? null : parseWidth(text.slice(0, at).trim());
  const ms = parseDuration(text.slice(at + 1).trim());
  if (ms < SHORTEST_AGE_MS) throw new UsageError('The shortest target age is 1m.');
  return { interval, ms };
}

/** The coins that the arguments name. @throws UsageError when they name none, or contradict each other */
export function coinsOf(coins: readonly string[], { top, all }: Pick<TrackOptions, 'top' | 'all'>): TrackedCoins[] {
  checkCoins(coins, { top, all });
  const chosen: TrackedCoins[] = [...new Set(coins)].map((coinId) => ({ tier: 'list', coinId }));
  if (top !== undefined) chosen.push({ tier: 'top', top });
  if (all) chosen.push({ tier: 'all' });
  return chosen;
}

/** @throws UsageError for an invalid time or age */
export function rulesOf(coins: readonly string[], options: TrackOptions, now: Instant): TrackRule[] {
  const chosen = coinsOf(coins, options);
  const intervals = intervalsOf(options);
  const since = sinceOf(options.since, now);
  const ages = agesOf(options.targetAge ?? [], intervals, options.series);
  return intervals.flatMap((interval) =>
    chosen.map((which) => ({
      ...which,
      interval,
      quote: options.quote,
      since: floorToGrid(since, interval),
      priority: options.priority ?? DEFAULT_PRIORITY[which.tier],
      targetAgeMs: ages.get(interval) ?? defaultTargetAgeMs(which.tier, interval),
    })),
  );
}

function sinceOf(text: string | undefined, now: Instant): Instant {
  return text === undefined ? Math.floor(now / DAY) * DAY : pastOption('--since', text, now);
}

function agesOf(
  given: readonly TargetAge[],
  intervals: readonly Interval[],
  series: SeriesKind,
): Map<Interval, number> {
  const ages = new Map<Interval, number>();
  for (const { interval, ms } of given) if (interval === null) for (const each of intervals) ages.set(each, ms);
  for (const { interval: width, ms } of given) {
    if (width === null) continue;
    const interval = intervalOf(width, series);
    if (!intervals.includes(interval)) {
      const chosen = ALL_INTERVALS.filter((i) => intervals.includes(i)).map(widthOf);
      throw new UsageError(
        `--target-age is given for ${width}, but --interval is ${chosen.join(', ')}; add ${width} to --interval.`,
      );
    }
    ages.set(interval, ms);
  }
  return ages;
}
