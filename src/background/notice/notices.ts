/** Which notices the operator should get: a pure function. Each notice is one or two sentences, to be read on a phone. */
import type { Instant } from '../../clock.ts';
import { formatCount, formatCounted, formatDuration, formatInstant } from '../../core/format.ts';
import { DAY, describeInterval } from '../../core/interval.ts';
import type { Notify } from '../../core/settings/notice-settings.ts';
import type { Schedule } from '../../ingest/schedule/schedule-plan.ts';
import type { QuotaState, Reserved } from '../../quota/quota.ts';
import type { RaisedNotice } from '../../store/work/notice.ts';
import type { AlertInputs, MetLimit } from '../../views/operations/alert-inputs.ts';

export type NoticeInputs = {
  readonly now: Instant;
  readonly accountId: string;
  readonly plan: string;
  readonly quota: QuotaState;
  /** Requests of the quota that are reserved. */
  readonly reserved: Reserved;
  readonly schedules: readonly Schedule[];
  readonly alerts: AlertInputs;
  /** Upstream's message, when it refuses the key. */
  readonly refusal: string | null;
  /** Since when, without a break, there is work on candles and quota for it. */
  readonly couldAskCandlesSince: Instant | null;
  /** Since when, without a break, there is quota for the schedules. */
  readonly couldRunSince: Instant | null;
};

const LEVELS = [100, 80] as const;
/** Longer than the longest window, so that each level is one notice in each window. */
const QUOTA_QUIET_MS = 40 * DAY;
const MINUTE = 60_000;
/** A history limit is probed again every day, and the operator knows it by then. */
const LIMIT_QUIET_MS = 90 * DAY;

export function noticesOf(inputs: NoticeInputs, notify: Notify): readonly RaisedNotice[] {
  const all = [
    ...quotaNotices(inputs),
    ...stuckNotices(inputs, notify.stuckAfterMs),
    ...inputs.alerts.historyLimits.map((limit) => limitNotice(inputs, limit)),
    ...revisionNotices(inputs, notify.revisionsADay),
    ...quarantineNotices(inputs),
  ];
  return all.filter(({ event }) => notify.events.includes(event));
}

/** Has each window quota left beside its reserved part? A hold after errors or a 429 does not count, because it ends soon. */
export function hasBudget({ day, month, hold }: QuotaState, reserved: Reserved): boolean {
  const isLeft = ({ spent, limit }: QuotaState['day'], reserved: number) => limit === null || limit - spent > reserved;
  return hold?.reason !== 'quota exhausted' && isLeft(day, reserved.day) && isLeft(month, reserved.month);
}

function quotaNotices({ quota, accountId, reserved }: NoticeInputs): RaisedNotice[] {
  return (['month', 'day'] as const).flatMap((name) => {
    const { start, reset, spent, limit } = quota[name];
    // What the upstream says takes precedence over our count; the end of its hold says which window it means.
    const upstreamSaysExhausted =
      quota.hold?.reason === 'quota exhausted' && holdIsOf(quota.hold.until, quota) === name;
    const left = limit === null ? null : limit - spent - (reserved.account?.[name] ?? 0);
    const isExhausted = upstreamSaysExhausted || (left !== null && left <= 0);
    const level = isExhausted ? 100 : LEVELS.find((percent) => limit !== null && spent >= (limit * percent) / 100);
    if (level === undefined) return [];
    const of = limit === null ? formatCount(spent) : `${formatCount(spent)} of ${formatCount(limit)}`;
    const what = upstreamSaysExhausted
      ? `The upstream says that the quota of the ${name} is exhausted (${quota.hold!.message}); Chandler counted ${of} requests`
      : level === 100
        ? `The quota of the ${name} is exhausted (${of} requests)`
        : `${level} % of the quota of the ${name} is used (${of} requests)`;
    const then =
      level === 100
        ? 'Nothing is lost: the remaining work continues then.'
        : 'Requests for the schedules are reserved.';
    const text = `${what}. The next ${name} begins ${formatInstant(reset)}. ${then} (${accountId})`;
    return [
      {
        event: 'quota',
        topic: `quota ${accountId} ${name} ${formatInstant(start)} ${level}`,
        text,
        quietMs: QUOTA_QUIET_MS,
      },
    ];
  });
}

/** The window that a hold is about: an exhausted window is held until its reset or a little longer. Null: the hold ends sooner. */
function holdIsOf(until: Instant, { day, month }: QuotaState): 'day' | 'month' | null {
  if (until < day.reset) return null;
  return until < month.reset && until <= day.reset + DAY / 2 ? 'day' : 'month';
}

function stuckNotices(inputs: NoticeInputs, afterMs: number): RaisedNotice[] {
  const { alerts, quota, now, accountId, refusal } = inputs;
  const hold =
    quota.hold === null ? '' : ` All requests wait until ${formatInstant(quota.hold.until)}: ${quota.hold.message}.`;
  const notices: RaisedNotice[] = [];
  const add = (topic: string, since: Instant, what: string, why: string) => {
    if (now - since < afterMs) return;
    const text = `Stuck: ${what} for ${formatDuration(now - since)}, although there is work and quota left.${why} (${accountId})`;
    // The topic has no time: work that gets stuck again and again is one notice a day.
    notices.push({ event: 'stuck', topic: `stuck ${topic}`, text, quietMs: DAY });
  };
  if (inputs.couldAskCandlesSince !== null) {
    const { backfills, dueSeries, candlesAt, lastFailure } = alerts;
    const work = [
      ...(backfills === 0 ? [] : [formatCounted(backfills, 'backfill')]),
      ...(dueSeries === 0 ? [] : [formatCounted(dueSeries, 'tracked series')]),
    ];
    const failure = lastFailure === null ? '' : ` The last request failed: ${lastFailure}.`;
    const since = Math.max(candlesAt ?? 0, inputs.couldAskCandlesSince);
    add('candles', since, 'no candles or prices arrived', ` Waiting: ${work.join(', ')}.${hold || failure}`);
  }
  if (inputs.couldRunSince !== null) {
    const late = overdue(inputs, inputs.couldRunSince).filter(({ since }) => now - since >= afterMs);
    if (late.length > 0) {
      const since = Math.min(...late.map((one) => one.since));
      const names = late.map(({ name }) => name).join(', ');
      add(
        `schedules ${names}`,
        since,
        `schedules were due but did not run (${names})`,
        hold || (refusal === null ? ' Run chandler schedule to see why.' : ` The reason: ${refusal}.`),
      );
    }
  }
  return notices;
}

/** The schedules that are due and did not run, and since when. */
function overdue(
  { schedules, alerts: { doneTicks }, now }: NoticeInputs,
  couldSince: Instant,
): readonly { readonly name: string; readonly since: Instant }[] {
  return schedules.flatMap(({ name, cadence }) => {
    if (cadence === null) return [];
    const since = Math.max(cadence.next(doneTicks.get(name) ?? couldSince), couldSince);
    return since > now ? [] : [{ name, since }];
  });
}

function limitNotice({ plan }: NoticeInputs, { interval, depthMs, message }: MetLimit): RaisedNotice {
  const candles =
    depthMs === null
      ? `no ${describeInterval(interval)}`
      : `${describeInterval(interval)} only ${formatDuration(Math.round(depthMs / MINUTE) * MINUTE)} back`;
  const text = `The plan ${plan} gives ${candles}: "${message}". Chandler requests nothing beyond that until the plan changes, except for one probe a day.`;
  // The depth is measured from the moment of the response: a few seconds more or less are the same limit.
  const topic = `history limit ${plan} ${interval} ${depthMs === null ? 'none' : Math.round(depthMs / (DAY / 24))}`;
  return { event: 'history-limit', topic, text, quietMs: LIMIT_QUIET_MS };
}

function revisionNotices({ alerts }: NoticeInputs, most: number): RaisedNotice[] {
  if (!alerts.isRevisedOften) return [];
  const text = `The upstream has changed more than ${formatCounted(most, 'final value')} within 24 hours. The old values are in market.revision.`;
  return [{ event: 'revisions', topic: 'revisions', text, quietMs: DAY }];
}

function quarantineNotices({ alerts: { quarantined } }: NoticeInputs): RaisedNotice[] {
  if (quarantined === null) return [];
  const { rows, upto, reasons } = quarantined;
  const text = `Chandler quarantined ${formatCounted(rows, 'invalid row')} in market.quarantine: ${reasons.join('; ')}.`;
  return [{ event: 'quarantine', topic: 'quarantine', text, quietMs: DAY, upto }];
}
