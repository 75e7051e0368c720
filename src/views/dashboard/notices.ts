/** The notices to the operator, a page at a time. */
import type { Instant } from '../../clock.ts';
import type { Sql } from '../../store/connection/connect.ts';

export type NoticeRow = {
  readonly id: number;
  readonly event: string;
  readonly text: string;
  readonly raisedAt: Instant;
  /** When the state began that it tells of; null: it tells of an event. */
  readonly beganAt: Instant | null;
  /** When that state was over; null: it lasts. */
  readonly endedAt: Instant | null;
  /** How often it was tried to send it. */
  readonly attempts: number;
  /** When it is sent, or tried again; null: not any more. */
  readonly dueAt: Instant | null;
  readonly sentAt: Instant | null;
  /** Why the last try failed. */
  readonly message: string | null;
};

export type NoticePage = { readonly rows: readonly NoticeRow[]; readonly next: number | null };

const PAGE = 50;

/** The states that last, the newest first; each is open once. */
export async function readOpenNotices(sql: Sql): Promise<readonly NoticeRow[]> {
  return sql<NoticeRow[]>`
    select ${columns(sql)} from ops.notice where began_at is not null and ended_at is null order by id desc limit ${PAGE}`;
}

/** The others, the newest first. `before`: the number of the notice before which the page begins; null: the newest. */
export async function readNotices(sql: Sql, before: number | null, size = PAGE): Promise<NoticePage> {
  const rows = await sql<NoticeRow[]>`
    select ${columns(sql)} from ops.notice
    where (began_at is null or ended_at is not null) ${before === null ? sql`` : sql`and id < ${before}`}
    order by id desc limit ${size + 1}`;
  return { rows: rows.slice(0, size), next: rows.length > size ? rows[size - 1]!.id : null };
}

function columns(sql: Sql) {
  return sql`id, event, text, raised_at, began_at, ended_at, attempts, due_at, sent_at, message`;
}
