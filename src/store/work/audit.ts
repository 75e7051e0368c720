/** The audit log: the commands that changed something, who ran them and when, and how they ended. */
import type { Instant } from '../../clock.ts';
import type { Span } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { matches, tables, updateRows } from '../connection/tables.ts';
import { audit } from '../schema/service.ts';
import { storableText } from '../values/storable-text.ts';

export type AuditedCommand = Readonly<typeof audit.$inferSelect> & {
  /** For the start of a service: the settings at the previous start of the same command; null when there is none. */
  readonly settingsBefore: RecordedSettings | null;
};

/** Settings by name, as text; secrets as fingerprints. `SALT` (the salt of the fingerprints) and `OWNER` (`host:pid` of a service) are no settings. */
export type RecordedSettings = Readonly<Record<string, string>>;
export const SALT = 'salt';
export const OWNER = 'owner';
export const NO_SETTINGS: readonly string[] = [SALT, OWNER];

const LONGEST_COMMAND = 1_000;
const LONGEST_MESSAGE = 500;

/** False for a database that only an earlier version has migrated. */
export async function hasAuditLog(sql: SqlOrTransaction): Promise<boolean> {
  const [row] = await sql<{ is: boolean }[]>`select to_regclass('ops.audit') is not null as is`;
  return row!.is;
}

/** Records that a command began. Resolves to the number of the entry. */
export async function beginAudit(
  sql: SqlOrTransaction,
  entry: {
    readonly at: Instant;
    /** `user@host`. */
    readonly actor: string;
    readonly command: string;
    readonly settings?: RecordedSettings | undefined;
  },
): Promise<number> {
  const { at, actor, command, settings = null } = entry;
  const text = storableText(command).slice(0, LONGEST_COMMAND);
  const [row] = await tables(sql)
    .insert(audit)
    .values({ at, actor: storableText(actor), command: text, settings })
    .returning({ id: audit.id });
  return row!.id;
}

/** Records how the command ended. `message` is null when it succeeded. */
export async function endAudit(
  sql: SqlOrTransaction,
  { id, endedAt, message }: { readonly id: number; readonly endedAt: Instant; readonly message: string | null },
): Promise<void> {
  const text = message === null ? null : storableText(message).slice(0, LONGEST_MESSAGE);
  await updateRows(sql, audit, { id }, { endedAt, message: text });
}

/**
 * Records migrations by a command that opens an embedded database, or by a service with `--migrate`, as an entry of their own. The first
 * migration of an empty database only creates it, and is not recorded.
 */
export async function recordMigration(
  sql: SqlOrTransaction,
  entry: {
    /** When it was done. */
    readonly span: Span;
    readonly actor: string;
    /** The command that opened the database. */
    readonly command: string;
    /** Names of the migrations that this applied. */
    readonly migrated: readonly string[];
  },
): Promise<void> {
  const { span, actor, command, migrated } = entry;
  if (migrated.length === 0 || migrated.some((name) => name.startsWith('0000_'))) return;
  const id = await beginAudit(sql, { at: span.from, actor, command: `migrate, by ${command}: ${migrated.join(', ')}` });
  await endAudit(sql, { id, endedAt: span.to, message: null });
}

/** Null when there is no entry with this number. */
export async function findAudit(
  sql: SqlOrTransaction,
  id: number,
): Promise<Pick<AuditedCommand, 'actor' | 'command' | 'endedAt' | 'message'> | null> {
  const [row] = await tables(sql).select().from(audit).where(matches(audit, { id }));
  return row ?? null;
}

/**
 * An SQL expression for an entry `a` of the audit log that is the start of a service: the settings at the previous start of the same command by the
 * same user on the same host; null when there is none. A change of a container's settings creates a container with another host name, so
 * all containers count as one host.
 */
export function settingsBefore(sql: SqlOrTransaction) {
  const whoOf = (actor: ReturnType<typeof sql>) => sql`regexp_replace(${actor}, '@[0-9a-f]{12}$', '@a container')`;
  return sql`(
    select o.settings - ${NO_SETTINGS}::text[] from ops.audit o
    where a.settings is not null and o.settings is not null and ${whoOf(sql`o.actor`)} = ${whoOf(sql`a.actor`)} and o.command = a.command
      and o.id < a.id
    order by o.id desc limit 1)`;
}

/** The salt of the fingerprints of the last start; null when none is recorded. */
export async function readSalt(sql: SqlOrTransaction): Promise<string | null> {
  const [row] = await sql<{ salt: string }[]>`
    select settings->>${SALT}::text as salt from ops.audit
    where settings is not null and settings->>${SALT}::text is not null order by id desc limit 1`;
  return row?.salt ?? null;
}

/** The newest `limit` entries, oldest first. */
export async function readAudit(
  sql: SqlOrTransaction,
  { since, limit }: { readonly since: Instant | null; readonly limit: number },
): Promise<readonly AuditedCommand[]> {
  const rows = await sql<AuditedCommand[]>`
    select a.id, a.at, a.actor, a.command, a.ended_at, a.message, a.settings - ${NO_SETTINGS}::text[] as settings,
      ${settingsBefore(sql)} as settings_before
    from (
      select * from ops.audit ${since === null ? sql`` : sql`where at >= ${since}`} order by id desc limit ${limit}
    ) a order by id desc`;
  return rows.toReversed();
}
