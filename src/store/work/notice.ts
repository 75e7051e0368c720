/**
 * Notices to the operator: the process that notices something raises the notice once, and the process that claims it sends it once. It
 * is sent twice only if its sender dies, or loses the database for longer than its lease, after sending and before recording that.
 */
import type { Instant } from '../../clock.ts';
import type { NoticeEvent } from '../../core/settings/notice-settings.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { storableText } from '../connection/storable-text.ts';
import { leaseEnd } from './lease.ts';

export type RaisedNotice = {
  readonly event: NoticeEvent;
  /** What exactly it is about. */
  readonly topic: string;
  readonly text: string;
  /** The same topic is raised again so much later at the soonest. */
  readonly quietMs: number;
  /** Of quarantine: the last row it tells of. */
  readonly upto?: number;
};

export type ClaimedNotice = {
  readonly id: number;
  readonly event: NoticeEvent;
  readonly text: string;
  readonly raisedAt: Instant;
  /** This one included. */
  readonly attempts: number;
};

export type NoticeEnd =
  | { readonly state: 'sent' }
  | { readonly state: 'later'; readonly at: Instant; readonly message: string }
  | { readonly state: 'given up'; readonly message: string }
  /** The process stops in the middle of it: for another one, at once. */
  | { readonly state: 'handed back' };

/** First half of the keys of the advisory locks here; the second is the topic, or 0 for whoever claims. */
const LOCK = 4_242_017;
const HOUR_MS = 3_600_000;
const KEPT_DAYS = 365;

/** Resolves to whether it is news. */
export async function raiseNotice(sql: Sql, notice: RaisedNotice, now: Instant): Promise<boolean> {
  const { event, topic, text, quietMs, upto = null } = notice;
  return sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${LOCK}, hashtext(${topic}))`;
    const rows = await tx`
      insert into ops.notice (event, topic, text, raised_at, upto, due_at)
      select ${event}, ${storableText(topic)}, ${storableText(text)}, ${now}::timestamptz, ${upto}::bigint, ${now}::timestamptz
      where not exists (
        select from ops.notice where topic = ${storableText(topic)} and raised_at > ${now - quietMs})
      returning id`;
    if (rows.length > 0)
      await tx`delete from ops.notice where raised_at < ${now}::timestamptz - make_interval(days => ${KEPT_DAYS})`;
    return rows.length > 0;
  });
}

/**
 * Gives this owner a lease on the oldest notice that waits. Null when none is due, when the oldest has failed and is to be tried again
 * later (what took one of them not takes no other), or when `mostPerHour` were sent within the hour.
 */
export async function claimNotice(
  sql: Sql,
  claim: { readonly owner: string; readonly now: Instant; readonly mostPerHour: number },
): Promise<ClaimedNotice | null> {
  const { owner, now, mostPerHour } = claim;
  return sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${LOCK}, 0)`;
    const [row] = await tx<ClaimedNotice[]>`
      update ops.notice set due_at = ${leaseEnd(now)}, attempts = attempts + 1, owner = ${owner}
      where id = (select id from ops.notice where due_at is not null order by id limit 1) and due_at <= ${now}
        and (select count(*) from ops.notice where sent_at > ${now - HOUR_MS}) < ${mostPerHour}
      returning id, event, text, raised_at, attempts`;
    return row ?? null;
  });
}

/** Renews the lease of a notice that is being sent. */
export async function renewNotice(
  sql: SqlOrTransaction,
  { id, owner, now }: { readonly id: number; readonly owner: string; readonly now: Instant },
): Promise<void> {
  await sql`
    update ops.notice set due_at = ${leaseEnd(now)} where id = ${id} and owner = ${owner} and sent_at is null`;
}

/** A notice that another process has claimed meanwhile stays as it is. */
export async function endNotice(
  sql: SqlOrTransaction,
  { id, owner, now }: { readonly id: number; readonly owner: string; readonly now: Instant },
  end: NoticeEnd,
): Promise<void> {
  const dueAt = end.state === 'later' ? end.at : end.state === 'handed back' ? now : null;
  await sql`
    update ops.notice set due_at = ${dueAt}, sent_at = ${end.state === 'sent' ? now : null},
      attempts = attempts - ${end.state === 'handed back' ? 1 : 0},
      message = ${'message' in end ? storableText(end.message).slice(0, 500) : null}
    where id = ${id} and owner = ${owner} and sent_at is null`;
}

/** The last row of quarantine that was told of; null when none ever was. */
export async function quarantineTold(sql: SqlOrTransaction): Promise<number | null> {
  const [row] = await sql<{ upto: number | null }[]>`
    select max(upto) as upto from ops.notice where event = 'quarantine'`;
  return row!.upto;
}

/** Two looks that are further apart have a break between them: nobody knows how it was meanwhile. */
const LONGEST_BREAK_MS = 5 * 60_000;

/** Since when `holds` was seen to hold by all who looked, without a break; null when it does not. */
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
      -- A clock that was set back has seen nothing for longer than there is time.
      when w.since is null or w.since > excluded.since
        or w.seen_at < excluded.seen_at - make_interval(secs => ${LONGEST_BREAK_MS / 1000}) then excluded.since
      else w.since end
    returning since`;
  return row!.since;
}
