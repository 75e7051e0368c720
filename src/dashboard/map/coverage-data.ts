/** What the coverage map draws, as compact JSON: some rows over some time, with as many details as its pixels can show. */
import type { Clock } from '../../clock.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { COVERAGE_STATES, type CoverageRow, readCoverageRows } from '../../views/dashboard/coverage-map.ts';
import { type CoverageOrders, createCoverageOrders } from '../../views/dashboard/coverage-order.ts';
import { BadAddress, type DashboardDeps, type ScreenInput } from '../screen.ts';
import { readCoverageAddress, readWhole } from './coverage-address.ts';
import { CAN_BE_ASKED, type Look, STATE_WORDS } from './coverage-states.ts';

/** `client/coverage-data.ts` has the same type: to import this one would bring the types of Node and of the whole server into the scripts of pages. */
export type CoverageAnswer = {
  /** Rows in all. */
  readonly total: number;
  /** The place of the first row of `rows` among all. */
  readonly row: number;
  /** Of the stretches: seconds since 1970 where they are counted from, and seconds in a step. */
  readonly from: number;
  readonly to: number;
  readonly step: number;
  readonly now: number;
  /** What the first number of a stretch says. */
  readonly states: readonly { readonly look: Look; readonly text: string; readonly canBeAsked: boolean }[];
  readonly rows: readonly CoverageRow[];
};

const MOST_ROWS = 400;
const MOST_STEPS = 20_000;
const LONGEST_STEP = 366 * 86_400;

const STATES = COVERAGE_STATES.map((state) => ({ ...STATE_WORDS[state], canBeAsked: CAN_BE_ASKED.includes(state) }));

/** Of the page's address, and `rows` from `row` on, `from`, `to`, and `step`, in seconds. */
export async function readCoverageData({ deps, url, now }: ScreenInput): Promise<CoverageAnswer> {
  const { filter, row, from, to } = readCoverageAddress(url);
  const given = (name: string) => url.searchParams.get(name) ?? '';
  if (from === null || to === null) throw new BadAddress('from and to must be given.');
  const rows = readWhole('rows', given('rows'), 1, MOST_ROWS);
  const step = readWhole('step', given('step'), 1, LONGEST_STEP);
  const [fromSeconds, toSeconds] = [Math.floor(from / 1000 / step) * step, Math.ceil(to / 1000 / step) * step];
  const steps = (toSeconds - fromSeconds) / step;
  if (steps > MOST_STEPS)
    throw new BadAddress(`step must be longer: the time from from to to has ${steps} steps, more than ${MOST_STEPS}.`);
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

/** One list for all pages of a dashboard, and none longer than its database is open. */
const orders = new WeakMap<Sql, CoverageOrders>();

export function coverageOrdersOf({
  sql,
  clock,
}: Pick<DashboardDeps, 'sql'> & { readonly clock: Clock }): CoverageOrders {
  const found = orders.get(sql) ?? createCoverageOrders(sql, clock);
  orders.set(sql, found);
  return found;
}
