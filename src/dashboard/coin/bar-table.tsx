/** The last bars of a chart as a table, with the reason of each hole: for visitors who cannot see the chart, and for browsers without scripts. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../clock.ts';
import { formatCounted, formatDay } from '../../core/format.ts';
import type { Bar, Bars, ChartOf } from '../../views/chart/bars.ts';
import type { Hole } from '../../views/chart/holes.ts';
import { type Column, Table } from '../parts/table.tsx';

const PRICE = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 10 });
const VOLUME = new Intl.NumberFormat('en-US', {
  maximumSignificantDigits: 12,
  maximumFractionDigits: 0,
  roundingPriority: 'lessPrecision',
});

type TableRow = { readonly at: Instant } & (
  | { readonly bar: Bar; readonly hole: null; readonly drawdown: number | null }
  | { readonly bar: null; readonly hole: Hole; readonly drawdown: null }
);

/** The newest first. Neighbouring slots without a bar for the same reason share one row. */
export function rowsOf({ bars, holes }: Bars): TableRow[] {
  let highest = Number.NEGATIVE_INFINITY;
  const rows: TableRow[] = bars.map((bar) => {
    highest = Math.max(highest, bar.close ?? highest);
    const drawdown = bar.close === null || !(highest > 0) ? null : bar.close / highest - 1;
    return { at: bar.at, bar, hole: null, drawdown };
  });
  for (const hole of holes) rows.push({ at: hole.from, bar: null, hole, drawdown: null });
  return rows.sort((a, b) => b.at - a.at);
}

export const BarTable: FC<{
  readonly chart: ChartOf;
  readonly rows: readonly TableRow[];
  readonly showsDrawdown: boolean;
  /** The address of the story of the slot that contains the instant. */
  readonly storyAt: (at: Instant) => string;
  readonly caption: string;
}> = ({ chart, rows, showsDrawdown, storyAt, caption }) => {
  const value = (title: string, of: (bar: Bar) => number | null, format = PRICE): Column<TableRow> => ({
    ...{ title, isNumber: true },
    cell: ({ bar }) => (bar === null ? '' : textOf(of(bar), format)),
  });
  const prices: Column<TableRow>[] =
    chart.kind === 'prices'
      ? [value('Price', (bar) => bar.close)]
      : [
          value('Open', (bar) => bar.open),
          value('High', (bar) => bar.high),
          value('Low', (bar) => bar.low),
          value('Close', (bar) => bar.close),
        ];
  const drawdown: Column<TableRow> = {
    ...{ title: 'Drawdown', isNumber: true },
    cell: ({ drawdown }) => (drawdown === null ? '' : `${(drawdown * 100).toFixed(1)}%`),
  };
  return (
    <Table
      caption={caption}
      rows={rows}
      empty="There are no slots in this span."
      columns={[
        {
          title: 'Opens (UTC)',
          cell: ({ at }) => (
            <a class="nowrap" href={storyAt(at)}>
              {formatDay(at)}
            </a>
          ),
        },
        ...prices,
        value(chart.kind === 'prices' ? '24 h volume' : 'Volume', (bar) => bar.volume, VOLUME),
        ...(showsDrawdown ? [drawdown] : []),
        { title: 'State', cell: stateOf },
      ]}
    />
  );
};

function stateOf({ bar, hole }: TableRow) {
  if (hole !== null) {
    const until = hole.slots === 1 ? '' : `, ${formatCounted(hole.slots, 'slot')} until ${formatDay(hole.to)}`;
    return (
      <span class={hole.reason.startsWith('empty') ? 'soft' : 'warn'}>
        {`${hole.reason}${until}${hole.detail === null ? '' : `: ${hole.detail}`}`}
      </span>
    );
  }
  return describeState(bar);
}

/** `final, revised`, `incomplete, aggregated from finer candles`. */
export function describeState({ isFinal, isIncomplete, isRevised, isMade }: Bar): string {
  const state = isFinal ? 'final' : isIncomplete ? 'incomplete' : 'provisional';
  return `${state}${isRevised ? ', revised' : ''}${isMade ? ', aggregated from finer candles' : ''}`;
}

function textOf(value: number | null, format: Intl.NumberFormat): string {
  return value === null ? 'null' : format.format(value);
}
