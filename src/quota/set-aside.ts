/** What the standing schedules will still ask until the day and the month end: backfill must leave it. */
import type { Instant } from '../clock.ts';
import { HOUR } from '../core/interval.ts';
import type { SetAside } from './quota.ts';
import { dayReset, monthReset } from './window.ts';

/** A standing schedule: so many requests, so often. */
export type Need = {
  readonly name: string;
  readonly requests: number;
  readonly everyMs: number;
  /** They ask the account: set aside from the other schedules as well. */
  readonly asksAccount?: boolean;
};

const CATALOGUE: Need = { name: 'catalogue', requests: 2, everyMs: 24 * HOUR };
const ACCOUNT: Need = { name: 'account', requests: 1, everyMs: 6 * HOUR, asksAccount: true };

/** The schedules every installation has. Without a key there is no account to ask. */
export function standingNeeds({ withKey }: { readonly withKey: boolean }): readonly Need[] {
  return withKey ? [CATALOGUE, ACCOUNT] : [CATALOGUE];
}

/** The most that `needs` can ask from `now` to the end of the UTC day and month, whenever in their period they run. */
export function setAsideAt(now: Instant, needs: readonly Need[]): SetAside {
  const account = needs.filter((need) => need.asksAccount);
  const day = dayReset(now) - now;
  const month = monthReset(now) - now;
  return {
    day: within(day, needs),
    month: within(month, needs),
    account: { day: within(day, account), month: within(month, account) },
  };
}

/** A half-open stretch holds at most `ceil(length / period)` beginnings of a period. */
function within(lengthMs: number, needs: readonly Need[]): number {
  return needs.reduce((sum, { requests, everyMs }) => sum + requests * Math.ceil(lengthMs / everyMs), 0);
}
