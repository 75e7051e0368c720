/** What the operator is to be told of, from how things stand: pure. Each notice is one sentence or two, to be read on a phone. */
import type { Instant } from '../../clock.ts';
import { DAY } from '../../core/interval.ts';
import type { Notify } from '../../core/notice-settings.ts';
import type { Schedule } from '../../ingest/schedule/schedule-plan.ts';
import type { QuotaState, SetAside } from '../../quota/quota.ts';
import type { RaisedNotice } from '../../store/work/notice.ts';
import type { Concerns, MetWall } from '../../views/operations/alert-inputs.ts';

/** How things stand; `since`: since when a service has seen it so, without a break. */
export type Standing = {
  readonly now: Instant;
  readonly accountId: string;
  readonly plan: string;
  readonly quota: QuotaState;
  /** Of the quota, for asking the account alone: nobody else gets it. */
  readonly setAside: SetAside;
  readonly schedules: readonly Schedule[];
  readonly concerns: Concerns;
  /** What upstream has said of the key, when it refuses it. */
  readonly refusal: string | null;
  /** There is work for candles, and requests for it. */
  readonly couldAskCandlesSince: Instant | null;
  /** There are requests for the schedules. */
  readonly couldRunSince: Instant | null;
};

const LEVELS = [100, 80] as const;
/** Longer than the longest window: once in each. */
const QUOTA_QUIET_MS = 40 * DAY;
/** A wall is looked at again every day, and is no news then. */
const WALL_QUIET_MS = 90 * DAY;

export function noticesOf(standing: Standing, notify: Notify): readonly RaisedNotice[] {
  const all = [
    ...quotaNotices(standing),
    ...stuckNotices(standing, notify.stuckAfterMs),
    ...standing.concerns.walls.map((wall) => wallNotice(standing, wall)),
    ...revisionNotices(standing, notify.revisionsADay),
    ...quarantineNotices(standing),
  ];
  return all.filter(({ event }) => notify.events.includes(event));
}

/** May something be asked that leaves `setAside` of each window? A hold that time ends, after errors or a 429, does not count. */
export function hasBudget({ day, month, hold }: QuotaState, setAside: SetAside): boolean {
  const isLeft = ({ spent, limit }: QuotaState['day'], aside: number) => limit === null || limit - spent > aside;
  return hold?.reason !== 'spent' && isLeft(day, setAside.day) && isLeft(month, setAside.month);
}

function quotaNotices({ quota, accountId, setAside }: Standing): RaisedNotice[] {
  return (['month', 'day'] as const).flatMap((name) => {
    const { start, reset, spent, limit } = quota[name];
    // Upstream's own word goes before what we have counted; what it holds until says of which window it speaks.
    const isToldSpent = quota.hold?.reason === 'spent' && holdIsOf(quota.hold.until, quota) === name;
    const left = limit === null ? null : limit - spent - (setAside.account?.[name] ?? 0);
    const isSpent = isToldSpent || (left !== null && left <= 0);
    const level = isSpent ? 100 : LEVELS.find((percent) => limit !== null && spent >= (limit * percent) / 100);
    if (level === undefined) return [];
    const of = limit === null ? count(spent) : `${count(spent)} of ${count(limit)}`;
    const what = isToldSpent
      ? `The upstream says that the ${name} is spent (${quota.hold!.message}); ${of} requests are counted here`
      : level === 100
        ? `All requests of the ${name} are spent (${of})`
        : `${level} % of the requests of the ${name} are spent (${of})`;
    const then =
      level === 100 ? 'Nothing is lost: the rest is asked then.' : 'What the schedules still need is set aside.';
    const text = `${what}. The next ${name} begins ${iso(reset)}. ${then} (${accountId})`;
    return [
      { event: 'quota', topic: `quota ${accountId} ${name} ${iso(start)} ${level}`, text, quietMs: QUOTA_QUIET_MS },
    ];
  });
}

/** A spent window is held until its reset, or a little longer; what ends sooner waits for a probe after one. */
function holdIsOf(until: Instant, { day, month }: QuotaState): 'day' | 'month' | null {
  if (until < day.reset) return null;
  return until < month.reset && until <= day.reset + DAY / 2 ? 'day' : 'month';
}

function stuckNotices(standing: Standing, afterMs: number): RaisedNotice[] {
  const { concerns, quota, now, accountId, refusal } = standing;
  const hold = quota.hold === null ? '' : ` Everybody waits until ${iso(quota.hold.until)}: ${quota.hold.message}.`;
  const notices: RaisedNotice[] = [];
  const tell = (topic: string, since: Instant, what: string, why: string) => {
    if (now - since < afterMs) return;
    const text = `Stuck: ${what} for ${stretch(now - since)}, with work and requests left.${why} (${accountId})`;
    // Without since when: what gets stuck again and again is one piece of news a day.
    notices.push({ event: 'stuck', topic: `stuck ${topic}`, text, quietMs: DAY });
  };
  if (standing.couldAskCandlesSince !== null) {
    const { backfills, turns, candlesAt, lastFailure } = concerns;
    const work = [some(backfills, 'backfill'), some(turns, 'tracked series', 'tracked series')].filter(
      (one) => one !== '',
    );
    const failure = lastFailure === null ? '' : ` The last request: ${lastFailure}.`;
    const since = Math.max(candlesAt ?? 0, standing.couldAskCandlesSince);
    tell('candles', since, 'no candles were brought', ` Waiting: ${work.join(', ')}.${hold || failure}`);
  }
  if (standing.couldRunSince !== null) {
    const late = overdue(standing, standing.couldRunSince).filter(({ since }) => now - since >= afterMs);
    if (late.length > 0) {
      const since = Math.min(...late.map((one) => one.since));
      const names = late.map(({ name }) => name).join(', ');
      tell(
        `schedules ${names}`,
        since,
        `schedules were due and not done (${names})`,
        hold || (refusal === null ? ' chandler schedule says why.' : ` It is told: ${refusal}.`),
      );
    }
  }
  return notices;
}

/** Since when each schedule is due without having been done. */
function overdue(
  { schedules, concerns: { doneTicks }, now }: Standing,
  couldSince: Instant,
): readonly { readonly name: string; readonly since: Instant }[] {
  return schedules.flatMap(({ name, cadence }) => {
    if (cadence === null) return [];
    const since = Math.max(cadence.next(doneTicks.get(name) ?? couldSince), couldSince);
    return since > now ? [] : [{ name, since }];
  });
}

function wallNotice({ plan }: Standing, { interval, depthMs, message }: MetWall): RaisedNotice {
  const candles = depthMs === null ? `no ${interval} candles` : `${interval} candles only ${stretch(depthMs)} back`;
  const text = `The plan ${plan} gives ${candles}: "${message}". What lies beyond is not asked again until the plan changes, but for one request a day that looks.`;
  // How far is reckoned from the moment of the answer: a few seconds more or less are the same wall.
  const topic = `wall ${plan} ${interval} ${depthMs === null ? 'none' : Math.round(depthMs / (DAY / 24))}`;
  return { event: 'wall', topic, text, quietMs: WALL_QUIET_MS };
}

function revisionNotices({ concerns }: Standing, most: number): RaisedNotice[] {
  if (!concerns.isRevisedOften) return [];
  const text = `Upstream has changed more than ${some(most, 'final candle') || '0 final candles'} within 24 hours. The values from before are in market.revision.`;
  return [{ event: 'revisions', topic: 'revisions', text, quietMs: DAY }];
}

function quarantineNotices({ concerns: { quarantined } }: Standing): RaisedNotice[] {
  if (quarantined === null) return [];
  const { rows, upto, reasons } = quarantined;
  const text = `${some(rows, 'row')} of answers could not be true and ${rows === 1 ? 'is' : 'are'} set aside in market.quarantine: ${reasons.join('; ')}.`;
  return [{ event: 'quarantine', topic: 'quarantine', text, quietMs: DAY, upto }];
}

function some(n: number, one: string, many = `${one}s`): string {
  return n === 0 ? '' : `${count(n)} ${n === 1 ? one : many}`;
}

function count(n: number): string {
  return n.toLocaleString('en-US');
}

function iso(at: Instant): string {
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

/** The two largest units: `1 d 4 h`, `35 min`. */
function stretch(ms: number): string {
  const units = [
    ['d', DAY],
    ['h', DAY / 24],
    ['min', 60_000],
  ] as const;
  const parts: string[] = [];
  let rest = Math.round(ms / 60_000) * 60_000;
  for (const [name, size] of units) {
    const n = Math.floor(rest / size);
    rest -= n * size;
    if (n > 0 && parts.length < 2) parts.push(`${n} ${name}`);
  }
  return parts.join(' ') || 'less than a minute';
}
