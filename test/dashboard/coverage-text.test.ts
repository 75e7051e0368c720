/** What the map says about a selected box: the prices of what can be requested, or why nothing can. */
import { expect, it } from 'vitest';
import { FETCHABLE_STATES, STATE_WORDS } from '../../src/dashboard/map/coverage-states.ts';
import { COVERAGE_STATES, type CoverageRow, type CoverageState } from '../../src/views/dashboard/coverage-map.ts';

type Row = CoverageRow;
type State = (typeof states)[number];
type Box = { readonly row: number; readonly endRow: number; readonly from: number; readonly to: number };
type Selected = { readonly text: string; readonly asked: readonly { readonly href: string }[] };
type Data = {
  readonly rowOf: (row: number) => Row | undefined;
  readonly statesIn: (row: number, from: number, to: number) => readonly State[] | null;
};

// Scripts of the browser use the types of the browser, which the tests lack. So the path is not a literal that the compiler would follow.
const load = (name: string) => import(`../../src/dashboard/client/${name}.ts`);
const { statesOf } = (await load('coverage-data')) as {
  statesOf: (row: Row, frame: object, from: number, to: number) => readonly State[] | null;
};
const { describeSelection, describeCell, describeUnreadRows } = (await load('coverage-text')) as {
  describeUnreadRows: (rows: readonly Row[]) => string;
  describeCell: (cell: { frame: object; row: Row; from: number; to: number }) => string;
  describeSelection: (box: Box, data: Data) => Selected;
};

const DAY = 86_400;
const states = COVERAGE_STATES.map((state) => ({
  ...STATE_WORDS[state],
  isFetchable: FETCHABLE_STATES.includes(state),
}));
const frame = { from: 0, to: 100 * DAY, step: DAY, states };

/** Stretches of this many days each, from the first day on. Null when they are not wanted. */
function rowOf(
  symbol: string,
  interval: '1h' | '24h',
  parts: readonly (readonly [CoverageState | null, number])[],
): Row {
  let day = 0;
  const stretches = parts.flatMap(([state, days]) => {
    const from = day;
    day += days;
    return state === null ? [] : [COVERAGE_STATES.indexOf(state), from, day];
  });
  const coin = {
    seriesId: 1,
    coinId: `${symbol.toLowerCase()}-coin`,
    symbol,
    name: symbol,
    rank: 1,
    tier: null,
    confirmedEmptyElsewhere: 0,
  };
  return { ...coin, interval, quote: 'usd', widthSeconds: interval === '1h' ? 3_600 : DAY, stretches };
}

const ROWS = [
  rowOf('DONE', '24h', [['final', 100]]),
  rowOf('HOLE', '24h', [
    ['final', 50],
    ['not asked yet', 10],
    ['provisional', 40],
  ]),
  rowOf('SOME', '1h', [
    ['final', 40],
    [null, 20],
    ['malformed', 40],
  ]),
  rowOf('SHUT', '24h', [['forbidden', 100]]),
];
const told = (rows: readonly [number, number], days: readonly [number, number]) =>
  describeSelection(
    { row: rows[0], endRow: rows[1], from: days[0] * DAY, to: days[1] * DAY },
    { rowOf: (row) => ROWS[row], statesIn: (row, from, to) => statesOf(ROWS[row]!, frame, from, to) },
  );

it.each([
  ['all is final', [0, 1], [10, 20], 'There is nothing to request: final.'],
  ['too young', [1, 2], [70, 80], 'There is nothing to request: provisional: too recent to be final.'],
  ['not wanted', [2, 3], [45, 55], 'There is nothing to request: no slot there is wanted.'],
  ['refused', [3, 4], [0, 9], 'There is nothing to request: refused: this account may not read it.'],
] as const)('a box with nothing to request has no price and says why: %s', (_, rows, days, why) => {
  const { text, asked } = told(rows, days);
  expect(asked).toEqual([]);
  expect(text).toContain(why);
});

it('a box has prices only for series with something to request', () => {
  const { text, asked } = told([0, 4], [55, 70]);
  expect(text).toBe('Selected: DONE, HOLE, SOME, SHUT, 1970-02-25 to 1970-03-12.');
  expect(asked.map(({ href }) => new URLSearchParams(href.split('?')[1]).getAll('coin'))).toEqual([
    ['hole-coin'],
    ['some-coin'],
  ]);
});

it('a box counts the whole slot into which it reaches', () => {
  expect(told([1, 2], [59.5, 59.9]).asked).toHaveLength(1);
  expect(told([1, 2], [60, 60.5]).asked).toHaveLength(0);
});

it('a box beyond the data that was read has a price: the page of the fill says what there is', () => {
  expect(told([0, 1], [90, 110]).asked).toHaveLength(1);
});

/** The text without the cell that it describes. */
const cell = (row: Row, step: number, from: number, to: number) =>
  describeCell({ frame: { ...frame, step }, row, from, to }).replace(/^.*? to [^:]*: /, '');

it('a cell describes its own slots, and not the slots beside it that a step covers', () => {
  const step = 7 * 3_600;
  const widened = (from: number, to: number) => [Math.floor(from / step), Math.ceil(to / step)];
  const twice = [COVERAGE_STATES.indexOf('told twice'), ...widened(10 * DAY, 12 * DAY)];
  const row = { ...ROWS[0]!, stretches: [0, ...widened(0, 30 * DAY), ...twice] };
  expect(cell(row, step, 9 * DAY, 10 * DAY)).toBe('final.');
  expect(cell(row, step, 10 * DAY, 11 * DAY)).toBe('final; empty, confirmed by two answers.');
  expect(cell(row, step, 12 * DAY, 13 * DAY)).toBe('final.');
  // The missing stretch of the newest time ends within a slot, or just after a slot has begun.
  const now = [COVERAGE_STATES.indexOf('provisional'), ...widened(30 * DAY, 30 * DAY + 60)];
  expect(cell({ ...row, stretches: now }, step, 30 * DAY, 31 * DAY)).toContain('too recent to be final');
  expect(cell({ ...row, stretches: [now[0]!, 30, 31] }, DAY, 30 * DAY, 31 * DAY)).toContain('too recent to be final');
});

it('a cell outside the data that was read says that it is not known', () => {
  expect(cell(ROWS[0]!, DAY, 99 * DAY, 101 * DAY)).toBe('not loaded, move the map there.');
});

it('a cell says how many confirmed empty slots are drawn as final', () => {
  const text = describeCell({ frame, row: { ...ROWS[0]!, confirmedEmptyElsewhere: 7 }, from: 0, to: DAY });
  expect(text).toMatch(/: final\. This series has 7 confirmed empty slots, drawn as final at this zoom: zoom in/);
  expect(describeUnreadRows(ROWS)).toBe('');
  const unread = ROWS.map((row, i) => ({ ...row, confirmedEmptyElsewhere: i }));
  expect(describeUnreadRows(unread)).toMatch(/^3 rows have confirmed empty slots that are drawn as final/);
  expect(describeUnreadRows(unread.slice(0, 2))).toMatch(/^One row has confirmed empty slots/);
});
