/**
 * The states that an operator is told of: which of them hold now, and since when. A pure function. Each text says what, since when, why,
 * and what to do.
 */
import { hostname } from 'node:os';
import type { Instant } from '../../clock.ts';
import { formatBytes, formatCounted, formatDuration, formatInstant } from '../../core/format.ts';
import { DAY, HOUR, MINUTE } from '../../core/interval.ts';
import type { StateEvent } from '../../core/settings/notice-settings.ts';
import type { Schedule } from '../../ingest/schedule/schedule-plan.ts';
import type { QuotaState, Reserved } from '../../quota/quota.ts';
import type { AlertInputs, LateTier } from '../../views/operations/alert-inputs.ts';
import type { Disk } from '../health/disk.ts';

export type StateInputs = {
  readonly now: Instant;
  readonly accountId: string;
  readonly plan: string;
  readonly quota: QuotaState;
  readonly schedules: readonly Schedule[];
  readonly alerts: AlertInputs;
  /** The upstream refuses the key of this account, or of another one that a service uses. */
  readonly refusal: RefusedKey | 'not known yet' | null;
  /** Set while the upstream gives no usable answers. */
  readonly outage: { readonly message: string } | null;
  /** Since when the outage has lasted without a break. */
  readonly downSince: Instant | null;
  /** Since when, without a break, there has been work on candles and quota for it. */
  readonly couldRequestCandlesSince: Instant | null;
  /** Since when, without a break, there has been quota for the schedules. */
  readonly couldRunSince: Instant | null;
  /** Since when, without a break, the quota has been too small for the target age of a tier. */
  readonly behindSince: Instant | null;
  /** The disks that this process can examine. */
  readonly disks: readonly (Disk & { readonly lowSince: Instant | null })[];
  /** Null when there is no lake. */
  readonly lake: LakeState | null;
};

type RefusedKey = {
  /** The account whose key another live service sends; absent when it is this account. */
  readonly accountId?: string;
  readonly message: string;
  readonly since: Instant;
  readonly retryAt: Instant;
};

export type LakeState = {
  readonly place: string;
  /** Why the last run failed, and since when runs have been failing. Null when it did not fail. */
  readonly failure: { readonly since: Instant; readonly message: string } | null;
  /** When Chandler began to write the newest state that readers see. Null when none is known. */
  readonly doneAt: Instant | null;
};

export type State = {
  readonly event: StateEvent;
  /** At most one notice per topic is open. The topic names no coin, schedule or tier, so the state stays the same when another one joins. */
  readonly topic: string;
  /** When the state began. Null when it does not hold. */
  readonly since: Instant | null;
  /** The state does not hold, but its notice was sent and that of its end was not, because it may come back. Absent means false. */
  readonly isSettling?: boolean;
  /** The state is over when it has not held for so long, because it may come and go. */
  readonly settleMs: number;
  /** The text of the notice when it begins. */
  readonly text: string;
  /** The text of the notice when it is over, after `Resolved: `. */
  readonly over: string;
};

/** A shorter outage, such as a restart of the upstream or of a proxy, is not worth a message. */
const DOWN_AFTER_MS = 5 * MINUTE;
const SETTLE_MS = 5 * MINUTE;
/** Each run plans the freshness that the quota allows anew, and the result changes a little between runs. */
const BEHIND_AFTER_MS = HOUR;
/** A text lists at most so many names, and the number of the others. */
const MOST_NAMES = 5;

/** Each state that this process can judge, whether it holds or not. */
export function statesOf(inputs: StateInputs, stuckAfterMs: number): readonly State[] {
  return [
    ...(inputs.refusal === 'not known yet' ? [] : [keyRefused(inputs.refusal, inputs)]),
    upstreamDown(inputs),
    stuckCandles(inputs, stuckAfterMs),
    stuckSchedules(inputs, stuckAfterMs),
    behind(inputs),
    ...inputs.disks.map((disk) => lowDisk(inputs, disk)),
    ...(inputs.lake === null ? [] : [lakeNotWritten(inputs.lake)]),
  ];
}

const CAUSES: ReadonlySet<StateEvent> = new Set(['key-refused', 'upstream-down', 'database-locked']);

/** Leaves out stuck work when another state explains it: a refused key, an upstream that is down, or a lock. */
export function withoutConsequences(states: readonly State[]): readonly State[] {
  const isExplained = states.some(({ event, since }) => since !== null && CAUSES.has(event));
  return isExplained ? states.filter(({ event, since }) => event !== 'stuck' || since === null) : states;
}

/** Whether the service does its work. Being behind does not count: which age the quota allows is the operator's choice, and no failure. */
export function isWell(states: readonly State[]): boolean {
  return states.every(({ event, since, isSettling = false }) => (since === null && !isSettling) || event === 'behind');
}

function keyRefused(refusal: RefusedKey | null, { accountId }: StateInputs): State {
  const text =
    refusal === null
      ? ''
      : `Key refused since ${formatInstant(refusal.since)}: ${refusal.message}. Nothing is fetched meanwhile, and nothing is lost. Chandler tries the key again automatically, next at ${formatInstant(refusal.retryAt)}; chandler doctor --online tries it at once.`;
  return {
    event: 'key-refused',
    topic: 'key-refused',
    since: refusal?.since ?? null,
    settleMs: 0,
    text: `${text} (${refusal?.accountId ?? accountId})`,
    over: `the upstream accepts the key again, and all work goes on. (${accountId})`,
  };
}

function upstreamDown({ downSince, outage, now, accountId }: StateInputs): State {
  const since = downSince !== null && now - downSince >= DOWN_AFTER_MS ? downSince : null;
  const text =
    since === null
      ? ''
      : `The upstream gives no usable answer since ${formatInstant(since)} (${formatDuration(now - since)}): ${outage?.message ?? ''}. Chandler retries automatically, and nothing is lost. If it lasts, check whether the upstream has an outage, then the network and CHANDLER_BASE_URL: chandler doctor --online.`;
  return {
    event: 'upstream-down',
    topic: 'upstream-down',
    since,
    settleMs: SETTLE_MS,
    text: `${text} (${accountId})`,
    over: `the upstream answers again, and all work goes on. (${accountId})`,
  };
}

/** A shorter lock of an administrator or a tool is not worth a message. */
const LOCKED_AFTER_MS = 2 * MINUTE;

type LockInputs = {
  readonly now: Instant;
  /** The incident of this process, which says who holds the lock. Null when nobody does. */
  readonly lock: { readonly message: string } | null;
  /** Since when the lock has been held without a break. */
  readonly lockedSince: Instant | null;
};

/** Judged separately and first, because the inputs of the other states may be behind the lock. */
export function databaseLocked({ now, lock, lockedSince }: LockInputs): State {
  const since = lock !== null && lockedSince !== null && now - lockedSince >= LOCKED_AFTER_MS ? lockedSince : null;
  const text =
    since === null
      ? ''
      : `Another session locks the database since ${formatInstant(since)} (${formatDuration(now - since)}): ${lock!.message}. Work that needs the lock waits meanwhile and continues automatically, and nothing is lost.`;
  return {
    event: 'database-locked',
    topic: 'database-locked',
    since,
    // Longer than the delay before the notice: after a restart, a process measures anew how long the lock has been held.
    settleMs: SETTLE_MS,
    text,
    over: 'no other session holds a lock that Chandler needs, and all work goes on.',
  };
}

function holdText({ hold }: QuotaState): string {
  return hold === null ? '' : ` All requests wait until ${formatInstant(hold.until)}: ${hold.message}.`;
}

function stuckCandles(inputs: StateInputs, afterMs: number): State {
  const { alerts, quota, now, accountId, couldRequestCandlesSince: could } = inputs;
  const { backfills, dueSeries, candlesAt, lastFailure } = alerts;
  const since = could === null ? null : Math.max(candlesAt ?? 0, could);
  const isStuck = since !== null && now - since >= afterMs;
  const work = [
    ...(backfills === 0 ? [] : [formatCounted(backfills, 'backfill')]),
    ...(dueSeries === 0 ? [] : [formatCounted(dueSeries, 'tracked series')]),
  ];
  const failure = lastFailure === null ? '' : ` The last request failed: ${lastFailure}.`;
  const what = isStuck
    ? `no candles or prices arrived since ${formatInstant(since)} (${formatDuration(now - since)}), although there is work and quota left`
    : '';
  return {
    event: 'stuck',
    topic: 'stuck candles',
    since: isStuck ? since : null,
    // At least the time after which it counts as stuck, so that one candle an hour does not end the state.
    settleMs: afterMs,
    text: `Stuck: ${what}. Waiting: ${work.join(', ')}.${holdText(quota) || failure} chandler backfills list and chandler status say more; chandler doctor --online checks everything. (${accountId})`,
    over:
      candlesAt !== null && now - candlesAt < afterMs
        ? `candles and prices arrive again. (${accountId})`
        : `no candles or prices wait to be fetched, or the quota allows none now. (${accountId})`,
  };
}

function stuckSchedules(inputs: StateInputs, afterMs: number): State {
  const { quota, now, accountId, couldRunSince } = inputs;
  const late =
    couldRunSince === null ? [] : overdue(inputs, couldRunSince).filter(({ since }) => now - since >= afterMs);
  const since = late.length === 0 ? null : Math.min(...late.map((one) => one.since));
  const what =
    since === null
      ? ''
      : `schedules were due but did not run (${listed(late.map(({ name }) => name))}), the first since ${formatInstant(since)} (${formatDuration(now - since)}), although there is quota left`;
  return {
    event: 'stuck',
    topic: 'stuck schedules',
    since,
    settleMs: afterMs,
    text: `Stuck: ${what}.${holdText(quota)} chandler schedule says why; check that a service with the roles scheduler and worker runs. (${accountId})`,
    over: `the schedules run again, or the quota allows none now. (${accountId})`,
  };
}

/** The schedules that were due but did not run, and since when. */
function overdue(
  { schedules, alerts: { doneTicks }, now }: StateInputs,
  couldSince: Instant,
): readonly { readonly name: string; readonly since: Instant }[] {
  return schedules.flatMap(({ name, cadence }) => {
    if (cadence === null) return [];
    const since = Math.max(cadence.next(doneTicks.get(name) ?? couldSince), couldSince);
    return since > now ? [] : [{ name, since }];
  });
}

function behind({ alerts: { lateTiers }, behindSince, now, plan, accountId }: StateInputs): State {
  const since = behindSince !== null && now - behindSince >= BEHIND_AFTER_MS ? behindSince : null;
  const text =
    since === null
      ? ''
      : `Tracked series are kept less fresh than wanted since ${formatInstant(since)}: ${listed(lateTiers.map(tierText))}. The requests of the plan ${plan} do not suffice for more. Accept that with a higher --target-age (chandler track add), track fewer series (chandler track remove), or take a larger plan; chandler status shows each tier.`;
  return {
    event: 'behind',
    topic: 'behind',
    since,
    settleMs: DAY,
    text: `${text} (${accountId})`,
    over: `the quota suffices for the target age of every tracked series again. (${accountId})`,
  };
}

function tierText({ tier, interval, targetAgeMs, achievableAgeMs }: LateTier): string {
  const achievable = achievableAgeMs === null ? 'never' : formatDuration(achievableAgeMs);
  return `${tier} ${interval} ${achievable} instead of ${formatDuration(targetAgeMs)}`;
}

function lowDisk({ now }: StateInputs, { folder, freeBytes, lowSince }: StateInputs['disks'][number]): State {
  const where = `${folder} on ${hostname()}`;
  const since = lowSince === null ? '' : `, low since ${formatInstant(Math.min(lowSince, now))}`;
  return {
    event: 'disk',
    // Without the host name: a container has a new name after each restart, but the same disk.
    topic: `disk ${folder}`,
    since: lowSince,
    settleMs: SETTLE_MS,
    text: `The disk of ${where} has ${formatBytes(freeBytes)} free${since}. When it is full, nothing can be stored. Make room, or have older data removed (CHANDLER_KEEP_CANDLES, CHANDLER_KEEP_TICKERS).`,
    over: `the disk of ${where} has ${formatBytes(freeBytes)} free.`,
  };
}

function lakeNotWritten({ place, failure, doneAt }: LakeState): State {
  const seen = doneAt === null ? 'Readers see nothing yet' : `Readers see it as of ${formatInstant(doneAt)}`;
  return {
    event: 'lake',
    topic: 'lake',
    since: failure?.since ?? null,
    settleMs: 0,
    text:
      failure === null
        ? ''
        : `The lake ${place} could not be written since ${formatInstant(failure.since)}: ${failure.message}. ${seen}. What is finished stays, and the schedule lake tries again; chandler doctor checks the place.`,
    over: `the lake ${place} is up to date again.`,
  };
}

function listed(names: readonly string[]): string {
  const more = names.length - MOST_NAMES;
  return `${names.slice(0, MOST_NAMES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** Whether each window has quota left besides its reserved part. A hold after errors or a 429 does not count, because it ends soon. */
export function hasBudget({ day, month, hold }: QuotaState, reserved: Reserved): boolean {
  const isLeft = ({ spent, limit }: QuotaState['day'], reserved: number) => limit === null || limit - spent > reserved;
  return hold?.reason !== 'quota exhausted' && isLeft(day, reserved.day) && isLeft(month, reserved.month);
}
