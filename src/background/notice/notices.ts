/** Which events the operator should be told of: a pure function. Each notice is a few sentences, short enough for a phone. */
import type { Instant } from '../../clock.ts';
import {
  formatCount,
  formatCounted,
  formatDay,
  formatDuration,
  formatInstant,
  formatSeries,
} from '../../core/format.ts';
import { DAY, describeInterval, MINUTE } from '../../core/interval.ts';
import type { Notify } from '../../core/settings/notice-settings.ts';
import type { QuotaState, Reserved } from '../../quota/quota.ts';
import type { RaisedNotice } from '../../store/work/notice.ts';
import type { AlertInputs, EndedBackfill, MetLimit } from '../../views/operations/alert-inputs.ts';

export type NoticeInputs = {
  readonly now: Instant;
  readonly accountId: string;
  readonly plan: string;
  readonly quota: QuotaState;
  /** Requests of the quota that are reserved. */
  readonly reserved: Reserved;
  readonly alerts: AlertInputs;
};

const LEVELS = [100, 80] as const;
/** Longer than the longest window, so that each level raises one notice per window. */
const QUOTA_QUIET_MS = 40 * DAY;
/** Chandler probes a history limit again every day. The operator needs to be told only once. */
const LIMIT_QUIET_MS = 90 * DAY;

export function noticesOf(inputs: NoticeInputs, notify: Notify): readonly RaisedNotice[] {
  const all = [
    ...quotaNotices(inputs),
    ...inputs.alerts.historyLimits.map((limit) => limitNotice(inputs, limit)),
    ...revisionNotices(inputs, notify.revisionsADay),
    ...quarantineNotices(inputs),
    ...inputs.alerts.endedBackfills.flatMap(backfillNotices),
  ];
  return all.filter(({ event }) => notify.events.includes(event));
}

function quotaNotices({ quota, accountId, reserved }: NoticeInputs): RaisedNotice[] {
  return (['month', 'day'] as const).flatMap((name) => {
    const { start, reset, spent, limit } = quota[name];
    // The upstream's statement takes precedence over our count. The end of its hold shows which window it means.
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

/** The window that a hold is about: the hold on an exhausted window ends at its reset or a little later. Null when the hold ends sooner. */
function holdIsOf(until: Instant, { day, month }: QuotaState): 'day' | 'month' | null {
  if (until < day.reset) return null;
  return until < month.reset && until <= day.reset + DAY / 2 ? 'day' : 'month';
}

function limitNotice({ plan }: NoticeInputs, { interval, depthMs, message }: MetLimit): RaisedNotice {
  const candles =
    depthMs === null
      ? `no ${describeInterval(interval)}`
      : `${describeInterval(interval)} only ${formatDuration(Math.round(depthMs / MINUTE) * MINUTE)} back`;
  const text = `The plan ${plan} gives ${candles}: "${message}". Chandler requests nothing beyond that until the plan changes, except for one probe a day.`;
  // The depth is measured back from the moment of the response, so a difference of a few seconds is the same limit.
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

/** Longer than the time for which Chandler looks back for ended backfills. */
const BACKFILL_QUIET_MS = 2 * DAY;
/** As long as notices are kept, because the past of the same series may fail for the same reason each day. */
const HISTORY_QUIET_MS = 365 * DAY;

function backfillNotices(ended: EndedBackfill): RaisedNotice[] {
  const { id, state, coins, from, to, requestedAt, finishedAt, message, isWanted, failingSince } = ended;
  // A backfill that the service requested itself is news only when it fails.
  if (state === 'done' && !isWanted) return [];
  const event = state === 'done' ? 'backfill-done' : 'backfill-failed';
  const span = `${formatDay(from)} to ${formatDay(to)}`;
  const name = `Backfill ${id} (${formatSeries(ended)} of ${formatCounted(coins, 'coin')}, ${span})`;
  const took = `It was requested ${formatInstant(requestedAt)}, and ended ${formatInstant(finishedAt)}.`;
  if (state === 'done') {
    const text = `${name} is done: nothing is left to fetch. ${took}`;
    return [{ event, topic: topicOf(ended), text, quietMs: BACKFILL_QUIET_MS }];
  }
  const failed = `${name} failed: ${message ?? 'no reason was recorded'}. ${took} What was fetched is kept.`;
  if (failingSince === null) {
    const text = `${failed} When the cause is gone: chandler backfills resume ${id}`;
    return [{ event, topic: topicOf(ended), text, quietMs: BACKFILL_QUIET_MS }];
  }
  const text = `${failed} It is about the past of tracked series: the service tries again each day, and notifies you again when it fails for another reason. chandler gaps shows what is missing.`;
  const topic = `history ${formatSeries(ended)} failed since ${formatInstant(failingSince)}`;
  return [{ event, topic, text, quietMs: HISTORY_QUIET_MS }];
}

/** A resumed backfill ends again, so the topic contains the time of the end. */
function topicOf({ id, state, finishedAt }: EndedBackfill): string {
  return `backfill ${id} ${state} ${formatInstant(finishedAt)}`;
}
