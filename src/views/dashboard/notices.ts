/** The notices to the operator, one page at a time. */
import type { Instant } from '../../clock.ts';
import type { Sql } from '../../store/connection/connect.ts';

export type NoticeRow = {
  readonly id: number;
  readonly event: string;
  readonly text: string;
  readonly raisedAt: Instant;
  /** When the state began that the notice reports; null: it reports an event. */
  readonly beganAt: Instant | null;
  /** When that state ended; null: it lasts. */
  readonly endedAt: Instant | null;
  /** Number of attempts to send it. */
  readonly attempts: number;
  /** When it is sent, or retried; null: it is not sent any more. */
  readonly dueAt: Instant | null;
  readonly sentAt: Instant | null;
  /** Why the last attempt failed. */
  readonly message: string | null;
};

type NoticePage = { readonly rows: readonly NoticeRow[]; readonly next: number | null };

const PAGE = 50;

/** The states that last, newest first. Each has one open notice. */
export async function readOpenNotices(sql: Sql): Promise<readonly NoticeRow[]> {
  return sql<NoticeRow[]>`
    select ${columns(sql)} from ops.notice where began_at is not null and ended_at is null order by id desc limit ${PAGE}`;
}

/** The other notices, newest first. `before`: the page has notices with lower numbers; null: it begins with the newest. */
export async function readNotices(sql: Sql, before: number | null): Promise<NoticePage> {
  const rows = await sql<NoticeRow[]>`
    select ${columns(sql)} from ops.notice
    where (began_at is null or ended_at is not null) ${before === null ? sql`` : sql`and id < ${before}`}
    order by id desc limit ${PAGE + 1}`;
  return { rows: rows.slice(0, PAGE), next: rows.length > PAGE ? rows[PAGE - 1]!.id : null };
}

function columns(sql: Sql) {
  return sql`id, event, text, raised_at, began_at, ended_at, attempts, due_at, sent_at, message`;
}
