/** The audit log, one page at a time, without any value of a setting. */
import type { Instant } from '../../clock.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { NO_SETTINGS, settingsBefore } from '../../store/work/audit.ts';

export type AuditEntry = {
  readonly id: number;
  readonly at: Instant;
  readonly actor: string;
  readonly command: string;
  readonly endedAt: Instant | null;
  /** Null: the command succeeded, or has not ended. */
  readonly message: string | null;
  /** For a start of the service: names of the settings that differ from the previous start of the same command. */
  readonly changedSettings: readonly string[];
};

export type AuditPage = { readonly rows: readonly AuditEntry[]; readonly next: number | null };

const PAGE = 30;

/** Newest first. `before`: the page has entries with lower numbers; null: it begins with the newest. */
export async function readAuditEntries(sql: Sql, before: number | null): Promise<AuditPage> {
  const rows = await sql<AuditEntry[]>`
    select a.id, a.at, a.actor, a.command, a.ended_at, a.message,
      case when b.settings is null then '{}'::text[] else array(
        select coalesce(x.key, y.key) from jsonb_each_text(a.settings - ${NO_SETTINGS}::text[]) x full join jsonb_each_text(b.settings) y on y.key = x.key
        where x.value is distinct from y.value order by 1) end as changed_settings
    from (
      select * from ops.audit ${before === null ? sql`` : sql`where id < ${before}`} order by id desc limit ${PAGE + 1}
    ) a cross join lateral (select ${settingsBefore(sql)} as settings) b
    order by a.id desc`;
  return { rows: rows.slice(0, PAGE), next: rows.length > PAGE ? rows[PAGE - 1]!.id : null };
}
