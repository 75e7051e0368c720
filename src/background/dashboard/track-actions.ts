/** Tracks a series of a coin from the dashboard, as `chandler track add` and `remove` do. The cost: requests a day, and those of its past. */
import type { App } from '../../app.ts';
import { type Budget, readBudget, readPlanning } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import { formatCounted, formatDay, formatDuration, formatSeries } from '../../core/format.ts';
import { ceilToGrid, DAY, floorToGrid, isPriceInterval, type SeriesName, widthOf } from '../../core/interval.ts';
import { keptPart } from '../../core/settings/retention-settings.ts';
import { DEFAULT_PRIORITY, defaultTargetAgeMs } from '../../core/tier.ts';
import { type Action, ActionFailed, type Arguments } from '../../dashboard/action.ts';
import { readInstant, readInterval, readQuote, readText } from '../../dashboard/parts/address.ts';
import { BadAddress } from '../../dashboard/screen.ts';
import { planBackfill } from '../../ingest/backfill/plan.ts';
import { HISTORY_PRIORITY } from '../../ingest/tracking/audit.ts';
import { planTiers } from '../../ingest/tracking/freshness.ts';
import { forecastFrom } from '../../quota/forecast.ts';
import { unknownCoins } from '../../store/snapshot/coin.ts';
import { addTracks, readTracks, type TrackRule } from '../../store/tracking/track-rule.ts';
import { NEW_TIER, newTier, readTiers } from '../../store/tracking/tracked-tier.ts';
import { applyRules, freshnessOptions, queueHistory, removeRules } from '../actions/track-rules.ts';

type Series = SeriesName;

/** Keeps the series fresh from now on. Parameters: `coin`, `interval`, `quote`, `since` (default: today). */
export async function trackAction(app: App, given: Arguments): ReturnType<Action> {
  const { sql } = app.database;
  const now = app.clock.now();
  const series = await readSeries(app, given);
  const { coinId, interval, quote } = series;
  const since = floorToGrid(readSince(given, now), interval);
  const targetAgeMs = defaultTargetAgeMs('list', interval);
  const terms = { interval, quote, since, priority: DEFAULT_PRIORITY.list, targetAgeMs };
  const rule: TrackRule = { tier: 'list', coinId, ...terms };
  const budget = await readBudget(app);
  const past = await pricePast(app, budget, rule, series);
  const daily = await priceOfDay(app, budget, series, targetAgeMs);
  const [old] = await readTracks(sql, { coins: [rule], intervals: [interval], quote });
  return {
    question: `Track ${formatSeries(series)} of ${coinId}?`,
    verb: `Track ${formatSeries(series)} of ${coinId}`,
    sentences: [
      `Chandler keeps it fresh from now on, and fetches its past since ${formatDay(since)}.`,
      ...(old === undefined
        ? []
        : [`A rule already tracks it, with data from ${formatDay(old.since)} on: the new rule replaces it.`]),
      `Its target age of ${formatDuration(targetAgeMs)} costs ${perDay(daily.requests)}.${daily.reach}`,
      `Its past costs ${formatCounted(past.requests, 'request')}, once.`,
      ...(past.refusedSlots > 0
        ? [
            `${formatCounted(past.refusedSlots, 'slot')} of its past ${past.refusedSlots === 1 ? 'is' : 'are'} beyond the history limit of the plan.`,
          ]
        : []),
    ],
    requests: past.requests,
    done: past.done,
    command: [...commandOf('add', series), '--since', formatDay(since).replace(' ', 'T')],
    next: pageOf(series),
    act: async () => {
      await addTracks(sql, [rule], app.clock.now());
      const { applied, budget: current } = await applyRules(app);
      const { queued, isOff } = await queueHistory(app, current, await readPlanning(app, current.plan), {
        ...{ coinIds: [coinId], interval, quote },
        span: { from: since, to: floorToGrid(app.clock.now(), interval) },
      });
      return [
        `${formatSeries(series)} of ${coinId} is tracked; ${formatCounted(applied.series, 'series')} in total.`,
        ...queued.map(({ id, requests }) => `Backfill ${id} fetches the past: ${formatCounted(requests, 'request')}.`),
        ...(isOff ? ['The schedule gaps is off, so nothing fetches the past of tracked series.'] : []),
      ];
    },
  };
}

/** Removes the rule that names the coin. Parameters: `coin`, `interval`, `quote`. */
export async function untrackAction(app: App, given: Arguments): ReturnType<Action> {
  const { sql } = app.database;
  const series = await readSeries(app, given);
  const { coinId, interval, quote } = series;
  const filter = { coins: [{ tier: 'list', coinId } as const], intervals: [interval], quote };
  const rules = await readTracks(sql, filter);
  if (rules.length === 0)
    throw new ActionFailed(
      `no rule names ${coinId} with ${formatSeries(series)}; rules with --top or --all cannot exclude a single coin`,
    );
  return {
    question: `Stop tracking ${formatSeries(series)} of ${coinId}?`,
    verb: `Stop tracking ${formatSeries(series)} of ${coinId}`,
    sentences: [
      'Stored data stays. Chandler requests the newest rows until they are final, and then stops.',
      'Open backfills of its past leave this series out, unless another rule wants it.',
    ],
    requests: 0,
    command: commandOf('remove', series),
    next: pageOf(series),
    act: async () => {
      const { removed, stillTracked, cancelled, shortened } = await removeRules(app, filter);
      if (removed === 0) throw new ActionFailed(`no rule names ${coinId} with ${formatSeries(series)} any more`);
      return [
        `The rule for ${formatSeries(series)} of ${coinId} is removed.`,
        ...cancelled.map((id) => `Backfill ${id}, of its past, is cancelled.`),
        ...shortened.map(({ id }) => `Backfill ${id} leaves this series out.`),
        ...(stillTracked > 0 ? [`Other rules still track ${formatCounted(stillTracked, 'series')} of this coin.`] : []),
      ];
    },
  };
}

async function readSeries({ database: { sql } }: App, given: Arguments): Promise<Series> {
  const coinId = readText(given, 'coin') ?? '';
  if (coinId === '') throw new BadAddress('coin is missing: give one, like coin=btc-bitcoin.');
  const [interval, quote] = [readInterval(given) ?? '24h', readQuote(given) ?? 'usd'];
  if ((await unknownCoins(sql, [coinId])).length > 0)
    throw new BadAddress(`There is no coin ${JSON.stringify(coinId)}.`);
  return { coinId, interval, quote };
}

/** The earliest day that can be requested: before the first coin existed. */
const EARLIEST = Date.UTC(2009, 0, 1);

function readSince(given: Arguments, now: Instant): Instant {
  const at = readInstant(given, 'since') ?? Math.floor(now / DAY) * DAY;
  if (!(at >= EARLIEST && at <= now))
    throw new BadAddress(
      `since must be a date like 2024-01-31, not before 2009 and not in the future, got ${JSON.stringify(given.get('since'))}.`,
    );
  return at;
}

/** Requests that the past of a rule still needs, and when they would be done. */
async function pricePast(app: App, budget: Budget, rule: TrackRule, { coinId, interval, quote }: Series) {
  const now = app.clock.now();
  const { sql, plan, historyLimits, keep } = await readPlanning(app, budget.plan);
  const whole = { from: rule.since, to: ceilToGrid(now, interval) };
  const span = keptPart(whole, interval, keep, now);
  if (span.from >= span.to) return { requests: 0, refusedSlots: 0, done: null };
  const target = { coinIds: [coinId], interval, quote, span };
  const place = { id: null, priority: HISTORY_PRIORITY };
  const historyLimit = historyLimits.of(interval);
  const { cost } = await planBackfill({ sql, target, now, requestedSince: now, plan, historyLimit, place });
  const state = await budget.quota.state();
  const { finishAt } = forecastFrom(
    { ...state, now },
    { requests: cost.requests, limits: budget.limits, reserved: budget.reserved },
  );
  return { ...cost, done: finishAt === null ? null : { from: finishAt, to: finishAt } };
}

/** How many requests a day this series adds, and how old its data would become with the present quota. Records nothing. */
async function priceOfDay(app: App, budget: Budget, { coinId, interval, quote }: Series, targetAgeMs: number) {
  const { sql } = app.database;
  const rows = await readTiers(sql);
  const others = await readTiers(sql, { coinIds: [coinId], interval, quote });
  const added = newTier({ tier: 'list', interval, targetAgeMs, series: 1 });
  const options = await freshnessOptions(app, budget);
  const [before, after] = [planTiers(rows, options), planTiers([...others, added], options)];
  const reached = after.tiers.find(({ id }) => id === NEW_TIER)!;
  const reach =
    reached.achievableAgeMs === null
      ? ' This plan leaves no requests for it.'
      : reached.achievableAgeMs > targetAgeMs
        ? ` With the available requests, its age reaches ${formatDuration(reached.achievableAgeMs)}.`
        : '';
  return { requests: Math.max(0, after.wantedPerDay - before.wantedPerDay), reach };
}

/** `24 requests a day`, `1 request every 2 days`. */
function perDay(requests: number): string {
  if (requests === 0) return 'no additional requests';
  if (requests < 1) return `1 request every ${formatDuration(DAY / requests)}`;
  return `${formatCounted(Math.ceil(requests), 'request')} a day`;
}

function commandOf(change: 'add' | 'remove', { coinId, interval, quote }: Series): string[] {
  return [
    ...['chandler', 'track', change, coinId, '--interval', widthOf(interval)],
    ...(change === 'remove' ? ['--series', isPriceInterval(interval) ? 'prices' : 'candles'] : []),
    ...(change === 'add' && isPriceInterval(interval) ? ['--series', 'prices'] : []),
    ...['--quote', quote],
  ];
}

function pageOf({ coinId, interval, quote }: Series): string {
  return `/ui/coins/${encodeURIComponent(coinId)}?${new URLSearchParams({ interval, quote })}`;
}
