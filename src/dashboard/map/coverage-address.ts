/** The address of the coverage map: which series, in which order, from which row, over which time. The page and its data use the same address. */
import type { Instant } from '../../clock.ts';
import { COVERAGE_STATES } from '../../views/dashboard/coverage-map.ts';
import { COVERAGE_SORTS, type CoverageFilter, type CoverageReason } from '../../views/dashboard/coverage-order.ts';
import { readCandleTime, readInterval, readQuote, readText, toCandleTime } from '../parts/address.ts';
import { BadAddress } from '../screen.ts';

export const COVERAGE_PATH = '/ui/coverage';

export type CoverageAddress = {
  readonly filter: CoverageFilter;
  /** The first visible row, from 0. */
  readonly row: number;
  /** Null when the wanted spans of the visible rows decide. */
  readonly from: Instant | null;
  readonly to: Instant | null;
  readonly cursor: CursorAddress | null;
  readonly selected: SelectionAddress | null;
};

/** The address names series instead of rows, because the order changes: a selection is what lies between two series now. */
type CursorAddress = { readonly seriesId: number; readonly at: Instant };
type SelectionAddress = {
  /** The series of the first row; `last` is that of the last row. */
  readonly first: number;
  readonly last: number;
  readonly from: Instant;
  readonly to: Instant;
};

/** The reasons by which series can be filtered: every state of a stretch except final. */
export const FILTER_REASONS = COVERAGE_STATES.filter((state): state is CoverageReason => state !== 'final');

const MOST_ROW = 100_000_000;

/** @throws BadAddress */
export function readCoverageAddress({ searchParams }: URL): CoverageAddress {
  // A form sends its empty fields, too.
  const given = (name: string) => searchParams.get(name)?.trim() || undefined;
  const reason = given('reason');
  const coin = readText(searchParams, 'coin') ?? undefined;
  const interval = readInterval(searchParams) ?? undefined;
  const quote = readQuote(searchParams) ?? undefined;
  const sort = oneOf('sort', given('sort') ?? 'rank', COVERAGE_SORTS);
  const byTier = oneOf('group', given('group') ?? 'none', ['none', 'tier']) === 'tier';
  const wanted = reason === undefined ? undefined : oneOf('reason', reason, FILTER_REASONS);
  const [from, to] = [readCandleTime(searchParams, 'from'), readCandleTime(searchParams, 'to')];
  if (from !== null && to !== null && from >= to)
    throw new BadAddress(`from must be before to, got from=${given('from')} and to=${given('to')}.`);
  return {
    filter: { sort, byTier, reason: wanted, interval, quote, coin },
    row: readWhole('row', given('row') ?? '0', 0, MOST_ROW),
    ...{ from, to },
    cursor: readCursor(given('cursor')),
    selected: readSelection(given('selected')),
  };
}

/** The address of the page with that first row. Time, cursor and selection stay the same. */
export function coverageHref({ filter, from, to, cursor, selected }: CoverageAddress, row: number): string {
  const query = new URLSearchParams();
  const { sort, byTier, reason, interval, quote, coin } = filter;
  if (sort !== 'rank') query.set('sort', sort);
  if (byTier) query.set('group', 'tier');
  for (const [name, value] of Object.entries({ reason, interval, quote, coin })) {
    if (value !== undefined) query.set(name, value);
  }
  const iso = (at: Instant) => new Date(at).toISOString();
  if (from !== null) query.set('from', iso(from));
  if (to !== null) query.set('to', iso(to));
  if (cursor !== null) query.set('cursor', [cursor.seriesId, iso(cursor.at)].join());
  if (selected !== null)
    query.set('selected', [selected.first, selected.last, iso(selected.from), iso(selected.to)].join());
  if (row > 0) query.set('row', String(row));
  return query.size === 0 ? COVERAGE_PATH : `${COVERAGE_PATH}?${query}`;
}

/** @throws BadAddress unless `text` is a whole number from `least` to `most` */
export function readWhole(name: string, text: string, least: number, most: number): number {
  const value = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most))
    throw new BadAddress(`${name} must be a whole number from ${least} to ${most}, got ${JSON.stringify(text)}.`);
  return value;
}

const MOST_SERIES = 2_147_483_647;

/** `12,2024-01-31T12:00Z`: a series, and an instant in it. */
function readCursor(text: string | undefined): CursorAddress | null {
  if (text === undefined) return null;
  const [series, at, ...more] = text.split(',');
  if (at === undefined || more.length > 0)
    throw new BadAddress(
      `cursor must be the number of a series and a time, like 12,2024-01-31T12:00Z, got ${JSON.stringify(text)}.`,
    );
  return { seriesId: readWhole('cursor', series!, 1, MOST_SERIES), at: toCandleTime('cursor', at) };
}

/** `12,17,2024-01-31,2024-02-29`: the series of the first and of the last row, and the times from and to. */
function readSelection(text: string | undefined): SelectionAddress | null {
  if (text === undefined) return null;
  const parts = text.split(',');
  if (parts.length !== 4)
    throw new BadAddress(
      `selected must be two numbers of series and two times, like 12,17,2024-01-31,2024-02-29, got ${JSON.stringify(text)}.`,
    );
  const [first, last] = [0, 1].map((i) => readWhole('selected', parts[i]!, 1, MOST_SERIES)) as [number, number];
  const [from, to] = [toCandleTime('selected', parts[2]!), toCandleTime('selected', parts[3]!)];
  if (from >= to) throw new BadAddress(`selected must have its earlier time first, got ${JSON.stringify(text)}.`);
  return { first, last, from, to };
}

function oneOf<Value extends string>(name: string, text: string, values: readonly Value[]): Value {
  const value = values.find((one) => one === text);
  if (value !== undefined) return value;
  throw new BadAddress(`${name} must be one of ${values.join(', ')}, got ${JSON.stringify(text)}.`);
}
