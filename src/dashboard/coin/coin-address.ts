/** The address of a coin's page: which chart it shows, which part of it, and the slot whose story it shows. */
import type { Instant } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import { formatCount } from '../../core/format.ts';
import { DAY, isPriceInterval } from '../../core/interval.ts';
import { parseBarWidth, slotAfter, slotOf } from '../../views/chart/bar-width.ts';
import { type ChartOf, type Extent, gridOf, MOST_ROWS, mostSlots, sourcesOf } from '../../views/chart/bars.ts';
import type { SeriesFacts } from '../../views/chart/coin-facts.ts';
import { readCandleTime } from '../parts/address.ts';
import { BadAddress } from '../screen.ts';

/** Days before the end of the data. */
export const SPANS = { '30d': 30, '90d': 90, '1y': 365, '5y': 1826, all: Number.POSITIVE_INFINITY } as const;
type SpanName = keyof typeof SPANS;
/** Number of slots when the address has no span. */
const DEFAULT_SLOTS = 300;

export type CoinAddress = {
  readonly chart: ChartOf;
  readonly span: SpanName | null;
  /** Replaces `span`: from the first instant to before the second. */
  readonly from: Instant | null;
  readonly to: Instant | null;
  /** An instant in the slot whose story the page shows. */
  readonly at: Instant | null;
  readonly showsDrawdown: boolean;
};

/** For what the address leaves out, the stored series decide. @throws BadAddress */
export function readCoinAddress(given: URLSearchParams, series: readonly SeriesFacts[], now: Instant): CoinAddress {
  const quote = readQuote(given.get('quote'), series);
  const span = given.get('span') || null;
  if (span !== null && !Object.hasOwn(SPANS, span))
    throw new BadAddress(`span must be one of ${Object.keys(SPANS).join(', ')}, got ${JSON.stringify(span)}.`);
  const [from, to, at] = [readCandleTime(given, 'from'), readCandleTime(given, 'to'), readCandleTime(given, 'at')];
  if (from !== null && to !== null && from >= to)
    throw new BadAddress(`from must be before to, got ${given.get('from')} and ${given.get('to')}.`);
  if (at !== null && at > now)
    throw new BadAddress(`at must not be in the future, got ${JSON.stringify(given.get('at'))}.`);
  const drawdown = given.get('drawdown') || 'false';
  if (drawdown !== 'true' && drawdown !== 'false')
    throw new BadAddress(`drawdown must be true or false, got ${JSON.stringify(drawdown)}.`);
  const chart = readChart(given.get('interval') || null, quote, series);
  return { chart, span: span as SpanName | null, from, to, at, showsDrawdown: drawdown === 'true' };
}

function readQuote(text: string | null, series: readonly SeriesFacts[]): Quote {
  if (text === null || text === '')
    return series.every(({ quote }) => quote === 'btc') && series.length > 0 ? 'btc' : 'usd';
  if (text !== 'usd' && text !== 'btc') throw new BadAddress(`quote must be usd or btc, got ${JSON.stringify(text)}.`);
  return text;
}

function readChart(text: string | null, quote: Quote, series: readonly SeriesFacts[]): ChartOf {
  if (text !== null && isPriceInterval(text)) return { kind: 'prices', quote, interval: text };
  const daily: ChartOf = { kind: 'candles', quote, width: parseBarWidth('24h')! };
  if (text !== null) {
    const width = parseBarWidth(text);
    if (width === null) {
      const right = 'a multiple of 5 minutes like 24h, 90m, 1w or 3mo, or a price series like prices-1d';
      throw new BadAddress(`interval must be ${right}, got ${JSON.stringify(text)}.`);
    }
    return { kind: 'candles', quote, width };
  }
  if (sourcesOf(series, daily).length > 0) return daily;
  const [prices] = series.filter((one) => one.quote === quote && isPriceInterval(one.interval));
  return prices !== undefined && isPriceInterval(prices.interval)
    ? { kind: 'prices', quote, interval: prices.interval }
    : daily;
}

/** @throws BadAddress for a chart whose single bar needs more rows than a page may read */
export function mostSlotsOf(sources: readonly SeriesFacts[], chart: ChartOf): number {
  const most = mostSlots(sources, chart);
  if (most > 0) return most;
  const finest = sources.at(-1)?.interval ?? nameOf(chart);
  throw new BadAddress(
    `interval must be shorter, got ${JSON.stringify(nameOf(chart))}: one bar would aggregate more than ${formatCount(MOST_ROWS)} ${finest} candles. A multiple of 1d aggregates whole days, and may be longer.`,
  );
}

/** No id has a control character, and Postgres refuses some of them. */
export function canBeId(text: string): boolean {
  return !/\p{Cc}/u.test(text);
}

type Shown = Omit<CoinAddress, 'at'> & { readonly at?: Instant | null };

/** The part of the chart that the address names, as starts of slots. Empty when no data lies in it. */
export function windowOf({ chart, span, from, to, at = null }: Shown, extent: Extent): Extent {
  const grid = gridOf(chart);
  // Without a span, the window contains the slot of the story.
  if (span === null && from === null && to === null && at !== null && at >= extent.from) {
    const slot = slotOf(grid, at);
    const end = Math.min(extent.to, slotAfter(grid, slot, DEFAULT_SLOTS / 3));
    const begin = slotAfter(grid, end, -DEFAULT_SLOTS);
    if (slot < end && slotAfter(grid, end, DEFAULT_SLOTS / 2) < extent.to)
      return { from: Math.max(extent.from, begin), to: end };
  }
  const end = to === null ? extent.to : Math.min(extent.to, endOf(to));
  const begin =
    from !== null
      ? slotOf(grid, from)
      : span !== null
        ? slotOf(grid, Math.max(extent.from, end - SPANS[span] * DAY))
        : slotAfter(grid, end, -DEFAULT_SLOTS);
  return { from: Math.min(end, Math.max(extent.from, begin)), to: Math.max(extent.from, end) };

  function endOf(at: Instant): Instant {
    const slot = slotOf(grid, at);
    return slot === at ? at : slotAfter(grid, slot);
  }
}

/** The same page with a change. `undefined` removes a field. */
export function coinPath(
  coinId: string,
  { chart, span, from, to, showsDrawdown }: Shown,
  change: Readonly<Record<string, string | undefined>> = {},
): string {
  const parts: Record<string, string | undefined> = {
    interval: nameOf(chart),
    quote: chart.quote,
    ...(from === null && to === null ? { span: span ?? undefined } : { from: iso(from), to: iso(to) }),
    drawdown: showsDrawdown ? 'true' : undefined,
    ...change,
  };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parts)) if (value !== undefined) query.set(name, value);
  return `${coinUrl(coinId)}?${query}`;
}

export function coinUrl(coinId: string): string {
  return `/ui/coins/${encodeURIComponent(coinId)}`;
}

/** The name of the chart as in the address. */
export function nameOf(chart: ChartOf): string {
  return chart.kind === 'prices' ? chart.interval : chart.width.name;
}

/** `24h candles`, `1w candles`, `1d prices`. */
export function describeChart(chart: ChartOf): string {
  return chart.kind === 'prices' ? `${chart.interval.replace('prices-', '')} prices` : `${chart.width.name} candles`;
}

/** A day as a date, other instants to the minute or the second. */
export function iso(at: Instant | null): string | undefined {
  if (at === null) return undefined;
  const text = new Date(at).toISOString();
  return at % DAY === 0 ? text.slice(0, 10) : at % 60_000 === 0 ? `${text.slice(0, 16)}Z` : `${text.slice(0, 19)}Z`;
}
