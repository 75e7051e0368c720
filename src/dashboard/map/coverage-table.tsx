/** The rows of the coverage map in numbers and words. */
import type { FC } from 'hono/jsx';
import { formatCount, formatCounted, formatDay } from '../../core/format.ts';
import { describeInterval } from '../../core/interval.ts';
import type { CoverageFacts, ReasonFacts } from '../../views/dashboard/coverage-map.ts';
import { Table } from '../parts/table.tsx';
import { STATE_WORDS } from './coverage-states.ts';

export const CoverageTable: FC<{ readonly facts: readonly CoverageFacts[] }> = ({ facts }) => (
  <Table
    caption="All wanted slots up to now"
    rows={facts}
    empty="No row is shown."
    columns={[
      { title: 'Coin', cell: (row) => <a href={coinHref(row)}>{`${row.symbol} ${row.name}`}</a> },
      { title: 'Series', cell: ({ interval, quote }) => `${describeInterval(interval)}, ${quote}` },
      { title: 'Tier', cell: ({ tier }) => tier ?? 'not tracked' },
      { title: 'Wanted', isNumber: true, cell: ({ slotsWanted }) => formatCount(slotsWanted) },
      { title: 'Final', isNumber: true, cell: ({ slotsCovered }) => formatCount(slotsCovered) },
      { title: 'Empty', cell: emptyOf },
      { title: 'Missing', isNumber: true, cell: ({ slotsMissing }) => formatCount(slotsMissing) },
      { title: 'Why', cell: ({ reasons }) => <Reasons reasons={reasons} /> },
    ]}
  />
);

/** The page of a coin with this series. */
function coinHref({ coinId, interval, quote }: Pick<CoverageFacts, 'coinId' | 'interval' | 'quote'>): string {
  return `/ui/coins/${encodeURIComponent(coinId)}?interval=${interval}&quote=${quote}`;
}

function emptyOf({ slotsEmptyOnce, slotsEmptyTwice }: CoverageFacts): string {
  const once = slotsEmptyOnce > 0 ? `${formatCount(slotsEmptyOnce)} by one answer` : '';
  const twice = slotsEmptyTwice > 0 ? `${formatCount(slotsEmptyTwice)} confirmed` : '';
  return [twice, once].filter((text) => text !== '').join(', ') || '0';
}

const Reasons: FC<{ readonly reasons: readonly ReasonFacts[] }> = ({ reasons }) =>
  reasons.length === 0 ? (
    <span class="good">nothing is missing</span>
  ) : (
    <ul class="reasons">
      {reasons.map((facts) => (
        <li>{describeReason(facts)}</li>
      ))}
    </ul>
  );

/** `not asked yet: 120 slots in 14 gaps, 2021-03-01 to 2024-01-31`. */
function describeReason({ reason, gaps, slots, from, to }: ReasonFacts): string {
  const begin = from === null ? 'the beginning' : formatDay(from);
  const end = to === null ? 'no end' : formatDay(to);
  return `${STATE_WORDS[reason].text}: ${formatCounted(slots, 'slot')} in ${formatCounted(gaps, 'gap')}, ${begin} to ${end}`;
}
