/** The audit log: which commands changed something, by whom and when, and how they ended. */
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { matches, tables, updateRows } from '../connection/tables.ts';
import { audit } from '../schema/service.ts';
import { storableText } from '../values/storable-text.ts';

export type AuditedCommand = Readonly<typeof audit.$inferSelect> & {
  /** Of the start of a service: the settings of the start of the same command before; null: it is the first. */
  readonly settingsBefore: RecordedSettings | null;
};

/** Settings by name, as text; secrets as fingerprints. Two are no settings: what these were made with, and the process (`host:pid`) of a service. */
export type RecordedSettings = Readonly<Record<string, string>>;
export const SALT = 'salt';
export const OWNER = 'owner';
export const NO_SETTINGS: readonly string[] = [SALT, OWNER];

const LONGEST_COMMAND = 1_000;
const LONGEST_MESSAGE = 500;

/** A database that an earlier version migrated has none. */
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

/** Records how it ended. `message` null: as it should. */
export async function endAudit(
  sql: SqlOrTransaction,
  { id, endedAt, message }: { readonly id: number; readonly endedAt: Instant; readonly message: string | null },
): Promise<void> {
  const text = message === null ? null : storableText(message).slice(0, LONGEST_MESSAGE);
  await updateRows(sql, audit, { id }, { endedAt, message: text });
}

/**
 * Whoever opens an embedded database, or starts a service with `--migrate`, may migrate it: that is an entry of its own. A database that was empty
 * was only made.
 */
export async function recordMigration(
  sql: SqlOrTransaction,
  entry: {
    /** When it was done. */
    readonly at: Instant;
    readonly actor: string;
    /** What opened the database. */
    readonly command: string;
    /** Names of the migrations that this applied. */
    readonly migrated: readonly string[];
    readonly tookMs: number;
  },
): Promise<void> {
  const { at: endedAt, tookMs, actor, command, migrated } = entry;
  const at = endedAt - tookMs;
  if (migrated.length === 0 || migrated.some((name) => name.startsWith('0000_'))) return;
  const id = await beginAudit(sql, { at, actor, command: `migrate, by ${command}: ${migrated.join(', ')}` });
  await endAudit(sql, { id, endedAt, message: null });
}

/** Null: there is no entry of this number. */
export async function findAudit(
  sql: SqlOrTransaction,
  id: number,
): Promise<Pick<AuditedCommand, 'actor' | 'command' | 'endedAt' | 'message'> | null> {
  const [row] = await tables(sql).select().from(audit).where(matches(audit, { id }));
  return row ?? null;
}

/**
 * Of an entry `a` of the audit log that is a start of a service: the settings of the start of the same command before, by the same user on the same
 * host; null: there is none. A container has another host name each time it is made, and that is what a change of its settings takes.
 */
export function settingsBefore(sql: SqlOrTransaction) {
  const whoOf = (actor: ReturnType<typeof sql>) => sql`regexp_replace(${actor}, '@[0-9a-f]{12}$', '@a container')`;
  return sql`(
    select o.settings - ${NO_SETTINGS}::text[] from ops.audit o
    where a.settings is not null and o.settings is not null and ${whoOf(sql`o.actor`)} = ${whoOf(sql`a.actor`)} and o.command = a.command
      and o.id < a.id
    order by o.id desc limit 1)`;
}

/** What the last start made fingerprints with; null: none has recorded it. */
export async function readSalt(sql: SqlOrTransaction): Promise<string | null> {
  const [row] = await sql<{ salt: string }[]>`
    select settings->>${SALT}::text as salt from ops.audit
    where settings is not null and settings->>${SALT}::text is not null order by id desc limit 1`;
  return row?.salt ?? null;
}

/** Oldest first, the newest `limit` of them. */
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
