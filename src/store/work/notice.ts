/**
 * Notices to the operator. The process that detects an event raises the notice once, and the process that claims the notice sends it once. It
 * is sent twice only if its sender dies, or loses the database for longer than its lease, after it sent the notice and before it recorded that.
 */
import { and, eq, gt, isNotNull, isNull, lt, max, or, sql as raw } from 'drizzle-orm';
import { type Instant, MOST_SKEW_MS } from '../../clock.ts';
import { STATES } from '../../core/settings/notice-settings.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { takeLock } from '../connection/lock.ts';
import { tables, updateRows } from '../connection/tables.ts';
import { notice } from '../schema/service.ts';
import { storableText } from '../values/storable-text.ts';
import { leaseEnd } from './lease.ts';

type Notice = Readonly<typeof notice.$inferSelect>;

export type RaisedNotice = Pick<Notice, 'event' | 'topic' | 'text'> & {
  /** Milliseconds during which the same topic is not raised again. */
  readonly quietMs: number;
  /** For quarantine: the id of the last row that the notice reports. */
  readonly upto?: number;
};

/** `attempts` includes this one. */
export type ClaimedNotice = Pick<Notice, 'id' | 'event' | 'text' | 'raisedAt' | 'attempts'>;

export type NoticeEnd =
  | { readonly state: 'sent' }
  | { readonly state: 'later'; readonly at: Instant; readonly message: string }
  | { readonly state: 'given up'; readonly message: string }
  /** The process stops during the sending: another process may send the notice at once. */
  | { readonly state: 'lease released' };

const HOUR_MS = 3_600_000;
const KEPT_MS = 365 * 24 * HOUR_MS;

/** The notices whose topic was not raised within `quietMs`. */
export async function notRaisedYet(
  sql: SqlOrTransaction,
  notices: readonly RaisedNotice[],
  now: Instant,
): Promise<readonly RaisedNotice[]> {
  if (notices.length === 0) return [];
  const known = await sql<{ topic: string }[]>`
    select distinct n.topic from unnest(${notices.map(({ topic }) => storableText(topic))}::text[],
      ${notices.map(({ quietMs }) => now - quietMs)}::timestamptz[]) as r(topic, since)
    join ops.notice n on n.topic = r.topic and n.raised_at > r.since`;
  const topics = new Set(known.map(({ topic }) => topic));
  return notices.filter(({ topic }) => !topics.has(storableText(topic)));
}

/** Resolves to false when the same topic was raised within `quietMs`. */
export async function raiseNotice(sql: Sql, raised: RaisedNotice, now: Instant): Promise<boolean> {
  const { event, topic, text, quietMs, upto = null } = raised;
  return sql.begin(async (tx) => {
    await takeLock(tx, 'raise a notice');
    const rows = await tx`
      insert into ops.notice (event, topic, text, raised_at, upto, due_at)
      select ${event}, ${storableText(topic)}, ${storableText(text)}, ${now}::timestamptz, ${upto}::bigint, ${now}::timestamptz
      where not exists (
        select from ops.notice where topic = ${storableText(topic)} and raised_at > ${now - quietMs})
      returning id`;
    if (rows.length > 0) await removeOld(tx, now);
    return rows.length > 0;
  });
}

/** Deletes old notices, but not those of states that still last: otherwise these would be raised again. */
async function removeOld(sql: SqlOrTransaction, now: Instant): Promise<void> {
  await tables(sql)
    .delete(notice)
    .where(and(lt(notice.raisedAt, now - KEPT_MS), or(isNull(notice.beganAt), isNotNull(notice.endedAt))));
}

/** A condition that lasts for some time. A notice is sent once when it begins and once when it is over. */
type RaisedState = Pick<Notice, 'event' | 'topic' | 'text'> & {
  readonly beganAt: Instant;
  /** When a process sent the notice already, without the database; null when the notice is still to be sent. */
  readonly sentAt: Instant | null;
};

/** A state that returns within this time after its end may come and go. So it is raised only if it still lasts after this time. */
const RETURNS_MS = HOUR_MS;

/** Resolves to false when the state has begun already, or ended within `RETURNS_MS`. */
export async function beginState(sql: Sql, raised: RaisedState, now: Instant): Promise<boolean> {
  const { event, topic, text, beganAt, sentAt } = raised;
  const rows = await sql`
    insert into ops.notice (event, topic, text, raised_at, began_at, sent_at, due_at, attempts)
    select ${event}, ${storableText(topic)}, ${storableText(text)}, ${now}, ${beganAt}, ${sentAt},
      case when ${sentAt}::timestamptz is null then ${now}::timestamptz end, ${sentAt === null ? 0 : 1}
    where ${sentAt !== null} or not exists (
      select from ops.notice where topic = ${storableText(topic)} and ended_at > ${now - RETURNS_MS})
    on conflict (topic) where began_at is not null and ended_at is null do nothing
    returning id`;
  if (rows.length > 0) await removeOld(sql, now);
  return rows.length > 0;
}

/** Ends a state and raises a notice with `text`. Resolves to false when the state was over already. */
export async function endState(sql: Sql, topic: string, text: string, now: Instant): Promise<boolean> {
  const rows = await sql`
    with ended as (
      update ops.notice set ended_at = ${now}
      where topic = ${storableText(topic)} and began_at is not null and ended_at is null returning event
    )
    insert into ops.notice (event, topic, text, raised_at, due_at)
    select event, ${storableText(`${topic} is over`)}, ${storableText(text)}, ${now}, ${now} from ended returning id`;
  return rows.length > 0;
}

type OpenState = Pick<Notice, 'event' | 'topic'> & { readonly beganAt: Instant };

/** The raised states that still last. */
export async function openStates(sql: SqlOrTransaction): Promise<OpenState[]> {
  return sql<OpenState[]>`
    select event, topic, began_at from ops.notice where began_at is not null and ended_at is null order by id`;
}

/** The states that still last, and that no process has checked since `since`. */
export async function statesNotJudgedSince(sql: SqlOrTransaction, since: Instant): Promise<OpenState[]> {
  return sql<OpenState[]>`
    select n.event, n.topic, n.began_at from ops.notice n join ops.watch w on w.name = ${judgedAs(sql`n.topic`, sql)}
    where n.began_at is not null and n.ended_at is null and w.seen_at < ${since} order by n.id`;
}

/** The name in `ops.watch` under which every process that checks a state records this, as long as the state lasts. */
function judgedAs(topic: ReturnType<SqlOrTransaction>, sql: SqlOrTransaction) {
  return sql`${topic} || ' is over'`;
}

/**
 * Gives this owner a lease on the oldest waiting notice. Notices of states come first, because nothing may work while a state lasts. Null when
 * no notice is due; when the first one failed and is retried later (a receiver that did not accept it accepts no other); or when
 * `mostPerHour` were sent within the last hour, of which `keptForStates` are only for states.
 */
export async function claimNotice(
  sql: Sql,
  claim: {
    readonly owner: string;
    readonly now: Instant;
    readonly mostPerHour: number;
    readonly keptForStates?: number;
  },
): Promise<ClaimedNotice | null> {
  const { owner, now, mostPerHour, keptForStates = 0 } = claim;
  const isEvent = sql`event <> all(${[...STATES]}::text[])`;
  return sql.begin(async (tx) => {
    await takeLock(tx, 'claim a notice');
    const [row] = await tx<ClaimedNotice[]>`
      update ops.notice set due_at = ${leaseEnd(now)}, attempts = attempts + 1, owner = ${owner}
      where id = (select id from ops.notice where due_at is not null order by ${isEvent}, id limit 1) and due_at <= ${now}
        and (select count(*) from ops.notice where sent_at > ${now - HOUR_MS})
          < ${mostPerHour}::int - case when ${isEvent} then ${keptForStates}::int else 0 end
      returning id, event, text, raised_at, attempts`;
    return row ?? null;
  });
}

type Claimed = { readonly id: number; readonly owner: string; readonly now: Instant };

/** Renews the lease of a notice that is being sent. */
export async function renewNotice(sql: SqlOrTransaction, { id, owner, now }: Claimed): Promise<void> {
  await sql`
    update ops.notice set due_at = ${leaseEnd(now)} where id = ${id} and owner = ${owner} and sent_at is null`;
}

/** Records how the sending ended, unless another process has claimed the notice meanwhile. */
export async function endNotice(sql: SqlOrTransaction, { id, owner, now }: Claimed, end: NoticeEnd): Promise<void> {
  const dueAt = { sent: null, 'given up': null, 'lease released': now, later: 'at' in end ? end.at : null }[end.state];
  await updateRows(
    sql,
    notice,
    { id, owner, sentAt: null },
    {
      dueAt,
      sentAt: end.state === 'sent' ? now : null,
      attempts: end.state === 'lease released' ? raw`attempts - 1` : undefined,
      message: 'message' in end ? storableText(end.message).slice(0, 500) : null,
    },
  );
}

/** Was a notice of this topic raised after `since`? */
export async function wasRaised(sql: SqlOrTransaction, topic: string, since: Instant): Promise<boolean> {
  const [row] = await tables(sql)
    .select({ id: notice.id })
    .from(notice)
    .where(and(eq(notice.topic, topic), gt(notice.raisedAt, since)))
    .limit(1);
  return row !== undefined;
}

/** The id of the last row of quarantine that a notice has reported; null when no notice has reported any. */
export async function lastNoticedQuarantine(sql: SqlOrTransaction): Promise<number | null> {
  const [row] = await tables(sql)
    .select({ upto: max(notice.upto) })
    .from(notice)
    .where(eq(notice.event, 'quarantine'));
  return row!.upto;
}

/** If two observations are further apart, it is unknown whether the condition held between them. */
const LONGEST_BREAK_MS = 5 * 60_000;

/**
 * Records whether the condition `name` holds now. Resolves to the instant since which every observation, by any process and without a break,
 * found that it holds; null when it does not hold now.
 */
export async function watchSince(
  sql: SqlOrTransaction,
  name: string,
  holds: boolean,
  now: Instant,
): Promise<Instant | null> {
  const [row] = await sql<{ since: number | null }[]>`
    insert into ops.watch as w (name, since, seen_at)
    values (${name}, case when ${holds} then ${now}::timestamptz end, ${now})
    on conflict (name) do update set seen_at = excluded.seen_at, since = case
      when excluded.since is null then null
      -- A begin in the future was written before a clock was set back.
      when w.since is null or w.since > excluded.since
        or w.seen_at < excluded.seen_at - make_interval(secs => ${LONGEST_BREAK_MS / 1000}) then excluded.since
      else w.since end
    returning since`;
  return row!.since;
}

type Turn = { readonly name: string; readonly everyMs: number; readonly now: Instant };

/** Work that only one of all services does, every `everyMs`. Resolves to true for the service whose turn it is. */
export async function claimTurn(sql: SqlOrTransaction, { name, everyMs, now }: Turn): Promise<boolean> {
  const rows = await sql`
    insert into ops.watch as w (name, seen_at) values (${name}, ${now})
    on conflict (name) do update set seen_at = excluded.seen_at
      -- A claim in the future was made before a clock was set back.
      where w.seen_at <= ${now - everyMs}::timestamptz or w.seen_at > ${now + MOST_SKEW_MS}::timestamptz
    returning name`;
  return rows.length > 0;
}

/** Gives a failed turn back: any service may take it again after `afterMs`. */
export async function releaseTurn(sql: SqlOrTransaction, { name, everyMs, now }: Turn, afterMs: number): Promise<void> {
  await sql`update ops.watch set seen_at = ${now - everyMs + afterMs} where name = ${name} and seen_at = ${now}`;
}
