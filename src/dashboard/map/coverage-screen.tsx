/** Coverage: series × time as a map, and the same as a table for visitors who cannot see a canvas. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../clock.ts';
import { QUOTES } from '../../core/candle.ts';
import { formatCount, formatCounted } from '../../core/format.ts';
import { ALL_INTERVALS, DAY, describeInterval } from '../../core/interval.ts';
import { readCoverageFacts, readFirstWanted } from '../../views/dashboard/coverage-map.ts';
import { Choice } from '../parts/choice.tsx';
import type { ScreenInput, ScreenView } from '../screen.ts';
import {
  COVERAGE_PATH,
  type CoverageAddress,
  coverageHref,
  FILTER_REASONS,
  readCoverageAddress,
} from './coverage-address.ts';
import { coverageOrdersOf } from './coverage-data.ts';
import { CoverageMap, type Marks } from './coverage-map.tsx';
import { STATE_WORDS } from './coverage-states.ts';
import { CoverageTable } from './coverage-table.tsx';

/** Rows of the table on one page. */
const PAGE_ROWS = 25;
/** With all modules that they import, so that the browser requests them at once and not one after the other. */
const SCRIPTS = [
  '',
  '-map',
  '-input',
  '-view',
  '-cursor',
  '-data',
  '-looks',
  '-paint',
  '-scroll',
  '-texts',
  '-text',
].map((part) => `coverage${part}`);
const LEAST_WINDOW_MS = 7 * DAY;
/** For rows of which nothing is wanted. */
const EMPTY_WINDOW_MS = 365 * DAY;

export async function coverageScreen({ deps, url, now }: ScreenInput): Promise<ScreenView> {
  const { sql } = deps;
  const address = readCoverageAddress(url);
  const order = await coverageOrdersOf(deps).of(address.filter);
  const ids = [...order.subarray(address.row, address.row + PAGE_ROWS)];
  const [facts, firstWanted] = await Promise.all([
    ids.length === 0 ? [] : readCoverageFacts(sql, ids),
    address.from !== null || ids.length === 0 ? null : readFirstWanted(sql, ids),
  ]);
  const marks = marksOf(address, order);
  const isLost = (address.selected !== null && !marks.selection) || (address.cursor !== null && !marks.cursor);
  const body = (
    <div>
      <h1>Coverage</h1>
      <Filters address={address} />
      <p class="on-paper soft">{describeFilter(address)}</p>
      {isLost && (
        <p class="notice">The address selects a series that the filters exclude, so the selection is not shown.</p>
      )}
      <CoverageMap window={windowOf(address, firstWanted, now)} row={address.row} total={order.length} marks={marks} />
      <section id="coverage-rows" data-live aria-labelledby="coverage-rows-title">
        <h2 id="coverage-rows-title">As a table</h2>
        <Pager address={address} total={order.length} shown={ids.length} />
        <CoverageTable facts={facts} />
      </section>
    </div>
  );
  return { title: 'Coverage', body, scripts: SCRIPTS };
}

/** The time that the map shows first: the one of the address, otherwise from the first wanted instant of the visible rows until now. */
function windowOf({ from, to }: CoverageAddress, firstWanted: Instant | null, now: Instant) {
  const end = to ?? Math.max(now, (from ?? 0) + LEAST_WINDOW_MS);
  const begin = from ?? Math.min(firstWanted ?? end - EMPTY_WINDOW_MS, end - LEAST_WINDOW_MS);
  return { from: begin, to: end };
}

function marksOf({ cursor, selected }: CoverageAddress, order: Int32Array): Marks {
  const ends = selected === null ? [] : [order.indexOf(selected.first), order.indexOf(selected.last)];
  const cursorRow = cursor === null ? -1 : order.indexOf(cursor.seriesId);
  return {
    cursor: cursor === null || cursorRow < 0 ? null : [cursorRow, cursor.at / 1000],
    selection:
      selected === null || ends.includes(-1)
        ? null
        : [Math.min(...ends), Math.max(...ends) + 1, selected.from / 1000, selected.to / 1000],
  };
}

const SORTS = { rank: 'Rank', name: 'Name', worst: 'Most missing time first' } as const;

const Filters: FC<{ readonly address: CoverageAddress }> = ({ address: { filter, from, to } }) => (
  <form class="filters" action={COVERAGE_PATH} id="coverage-filters">
    <Choice name="sort" label="Sort by" value={filter.sort} options={Object.entries(SORTS)} />
    <Choice
      name="group"
      label="Group by"
      value={filter.byTier ? 'tier' : ''}
      options={[
        ['', 'nothing'],
        ['tier', 'tier'],
      ]}
    />
    <Choice
      name="reason"
      label="State"
      value={filter.reason ?? ''}
      options={[['', 'any'], ...FILTER_REASONS.map((reason) => [reason, STATE_WORDS[reason].text] as const)]}
    />
    <Choice
      name="interval"
      label="Interval"
      value={filter.interval ?? ''}
      options={[['', 'all'], ...ALL_INTERVALS.map((one) => [one, describeInterval(one)] as const)]}
    />
    <Choice
      name="quote"
      label="Quote"
      value={filter.quote ?? ''}
      options={[['', 'both'], ...QUOTES.map((one) => [one, one] as const)]}
    />
    <label>
      Coin
      <input name="coin" type="search" value={filter.coin ?? ''} maxlength={100} placeholder="name, symbol or id" />
    </label>
    {from !== null && <input type="hidden" name="from" value={new Date(from).toISOString()} />}
    {to !== null && <input type="hidden" name="to" value={new Date(to).toISOString()} />}
    <button type="submit">Show</button>
  </form>
);

/** For paper, which shows no form. */
function describeFilter({ filter: { sort, byTier, reason, interval, quote, coin } }: CoverageAddress): string {
  const parts = [
    `Sorted by: ${SORTS[sort].toLowerCase()}`,
    byTier ? 'grouped by tier' : '',
    reason === undefined ? '' : `state: ${STATE_WORDS[reason].text}`,
    interval === undefined ? '' : describeInterval(interval),
    quote ?? '',
    coin === undefined ? '' : `coins with "${coin}"`,
  ];
  return `${parts.filter((part) => part !== '').join('; ')}.`;
}

const Pager: FC<{ readonly address: CoverageAddress; readonly total: number; readonly shown: number }> = ({
  address,
  total,
  shown,
}) => {
  const { row } = address;
  if (total === 0) return <p class="soft">No series matches.</p>;
  return (
    <p class="actions">
      {row > 0 && <a href={coverageHref(address, Math.max(0, Math.min(row, total) - PAGE_ROWS))}>Previous rows</a>}
      <span>
        {shown === 0
          ? `There is no row ${formatCount(row + 1)}: there are ${formatCounted(total, 'row')}.`
          : `Rows ${formatCount(row + 1)} to ${formatCount(row + shown)} of ${formatCount(total)}`}
      </span>
      {row + shown < total && <a href={coverageHref(address, row + PAGE_ROWS)}>Next rows</a>}
    </p>
  );
};
