/**
 * Notices to the operator: the process that notices something raises the notice once, and the process that claims it sends it once. It
 * is sent twice only if its sender dies, or loses the database for longer than its lease, after sending and before recording that.
 */
import { eq, lt, max, sql as raw } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { takeLock } from '../connection/lock.ts';
import { storableText } from '../connection/storable-text.ts';
import { tables, updateRows } from '../connection/tables.ts';
import { notice } from '../schema/service.ts';
import { leaseEnd } from './lease.ts';

type Notice = Readonly<typeof notice.$inferSelect>;

export type RaisedNotice = Pick<Notice, 'event' | 'topic' | 'text'> & {
  /** The same topic is raised again so much later at the soonest. */
  readonly quietMs: number;
  /** Of quarantine: the id of the last row that it reports. */
  readonly upto?: number;
};

/** `attempts` includes this one. */
export type ClaimedNotice = Pick<Notice, 'id' | 'event' | 'text' | 'raisedAt' | 'attempts'>;

export type NoticeEnd =
  | { readonly state: 'sent' }
  | { readonly state: 'later'; readonly at: Instant; readonly message: string }
  | { readonly state: 'given up'; readonly message: string }
  /** The process stops while sending: another one may send it at once. */
  | { readonly state: 'lease released' };

const HOUR_MS = 3_600_000;
const KEPT_MS = 365 * 24 * HOUR_MS;

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
    if (rows.length > 0)
      await tables(tx)
        .delete(notice)
        .where(lt(notice.raisedAt, now - KEPT_MS));
    return rows.length > 0;
  });
}

/**
 * Gives this owner a lease on the oldest notice that waits. Null when none is due, when the oldest has failed and is to be tried again
 * later (a receiver that did not take this one takes no other), or when `mostPerHour` were sent within the hour.
 */
export async function claimNotice(
  sql: Sql,
  claim: { readonly owner: string; readonly now: Instant; readonly mostPerHour: number },
): Promise<ClaimedNotice | null> {
  const { owner, now, mostPerHour } = claim;
  return sql.begin(async (tx) => {
    await takeLock(tx, 'claim a notice');
    const [row] = await tx<ClaimedNotice[]>`
      update ops.notice set due_at = ${leaseEnd(now)}, attempts = attempts + 1, owner = ${owner}
      where id = (select id from ops.notice where due_at is not null order by id limit 1) and due_at <= ${now}
        and (select count(*) from ops.notice where sent_at > ${now - HOUR_MS}) < ${mostPerHour}
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

/** A notice that another process has claimed meanwhile stays as it is. */
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

/** The id of the last row of quarantine that a notice has reported; null when none ever was. */
export async function quarantineTold(sql: SqlOrTransaction): Promise<number | null> {
  const [row] = await tables(sql)
    .select({ upto: max(notice.upto) })
    .from(notice)
    .where(eq(notice.event, 'quarantine'));
  return row!.upto;
}

/** Between two observations that are further apart, nobody knows whether the condition held. */
const LONGEST_BREAK_MS = 5 * 60_000;

/**
 * Records whether the condition `name` holds now. Resolves to since when every observation, of any process and without a break, has
 * found that it holds; null when it does not.
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
      -- A begin that lies ahead was written before a clock was set back.
      when w.since is null or w.since > excluded.since
        or w.seen_at < excluded.seen_at - make_interval(secs => ${LONGEST_BREAK_MS / 1000}) then excluded.since
      else w.since end
    returning since`;
  return row!.since;
}
