/** The data of the coverage map as compact JSON: some rows over some time, with the details that its pixels can show. */
import type { Clock } from '../../clock.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { COVERAGE_STATES, type CoverageRow, readCoverageRows } from '../../views/dashboard/coverage-map.ts';
import { type CoverageOrders, createCoverageOrders } from '../../views/dashboard/coverage-order.ts';
import { BadAddress, type DashboardDeps, type ScreenInput } from '../screen.ts';
import { readCoverageAddress, readWhole } from './coverage-address.ts';
import { FETCHABLE_STATES, type Look, STATE_WORDS } from './coverage-states.ts';

/** `client/coverage-data.ts` has the same type: importing this one would bring the types of Node and of the whole server into the page scripts. */
export type CoverageAnswer = {
  /** Number of rows in total. */
  readonly total: number;
  /** The index of the first row of `rows` among all. */
  readonly row: number;
  /** For the stretches: the second since 1970 from which they are counted. `step` is the number of seconds in a step. */
  readonly from: number;
  readonly to: number;
  readonly step: number;
  readonly now: number;
  /** The first number of a stretch is an index in this list. */
  readonly states: readonly { readonly look: Look; readonly text: string; readonly isFetchable: boolean }[];
  readonly rows: readonly CoverageRow[];
};

const MOST_ROWS = 400;
const MOST_STEPS = 20_000;
const LONGEST_STEP = 366 * 86_400;

const STATES = COVERAGE_STATES.map((state) => ({
  ...STATE_WORDS[state],
  isFetchable: FETCHABLE_STATES.includes(state),
}));

/** Takes the parameters of the page's address, and `rows` (a number, from `row` on), `from`, `to`, and `step` in seconds. */
export async function readCoverageData({ deps, url, now }: ScreenInput): Promise<CoverageAnswer> {
  const { filter, row, from, to } = readCoverageAddress(url);
  const given = (name: string) => url.searchParams.get(name) ?? '';
  if (from === null || to === null)
    throw new BadAddress(`from and to are required, got from=${given('from')} and to=${given('to')}.`);
  const rows = readWhole('rows', given('rows'), 1, MOST_ROWS);
  const step = readWhole('step', given('step'), 1, LONGEST_STEP);
  const [fromSeconds, toSeconds] = [Math.floor(from / 1000 / step) * step, Math.ceil(to / 1000 / step) * step];
  const steps = (toSeconds - fromSeconds) / step;
  if (steps > MOST_STEPS)
    throw new BadAddress(
      `step must be longer, got ${step}: the time between from and to has ${steps} steps, and the most is ${MOST_STEPS}.`,
    );
  const order = await coverageOrdersOf(deps).of(filter);
  const ids = [...order.subarray(row, row + rows)];
  const window = { fromSeconds, toSeconds, stepSeconds: step };
  return {
    ...{
      total: order.length,
      row,
      from: fromSeconds,
      to: toSeconds,
      step,
      now: Math.floor(now / 1000),
      states: STATES,
    },
    rows: ids.length === 0 ? [] : await readCoverageRows(deps.sql, ids, window),
  };
}

/** One list for all pages of a dashboard, kept only while its database is open. */
const orders = new WeakMap<Sql, CoverageOrders>();

export function coverageOrdersOf({
  sql,
  clock,
}: Pick<DashboardDeps, 'sql'> & { readonly clock: Clock }): CoverageOrders {
  const found = orders.get(sql) ?? createCoverageOrders(sql, clock);
  orders.set(sql, found);
  return found;
}
