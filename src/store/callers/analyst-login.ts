/** Logins of analysts: members of the role `analyst`, in UTC and read-only, with time limits. */
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';

export type AnalystLogin = {
  readonly name: string;
  /** The most connections; null means unlimited. */
  readonly connections: number | null;
  /** The limit for one statement, in this database or on the whole server; null when `chandler analyst` set none. */
  readonly statementTimeoutMs: number | null;
  /** Open sessions in this database. */
  readonly sessions: number;
  /** False when somebody else created the login. */
  readonly isOurs: boolean;
};

type NewAnalystLogin = {
  readonly name: string;
  /** As `scramVerifier` makes it. */
  readonly verifier: string;
  readonly connections: number;
  readonly statementTimeoutMs: number;
};

const MADE_BY_US = 'Made by chandler analyst.';
/** The limit for an idle transaction: a forgotten one prevents vacuum from removing old versions of rows. */
const IDLE_IN_TRANSACTION_MS = 60_000;
/** The limit for a lock wait. A reader waits for locks only while the schema changes. */
const LOCK_MS = 10_000;
/** The limit for each server process, so that a huge sort cannot fill the disk. Unlike the other limits, a session cannot raise it. */
const TEMP_FILES = '2GB';

/** @throws the Postgres error: 42710 when the role exists, 42501 when this user may not create roles. */
export async function createAnalystLogin(sql: Sql, login: NewAnalystLogin): Promise<void> {
  const { name, verifier, connections, statementTimeoutMs } = login;
  const settings = {
    TimeZone: 'UTC',
    default_transaction_read_only: 'on',
    statement_timeout: String(statementTimeoutMs),
    lock_timeout: String(LOCK_MS),
    idle_in_transaction_session_timeout: String(IDLE_IN_TRANSACTION_MS),
  };
  await sql.begin(async (tx) => {
    await run(
      tx,
      tx`select format('create role %I login password %L connection limit %s in role analyst',
      ${name}::text, ${verifier}::text, ${connections}::integer) as statement`,
    );
    // A user that is not a superuser must be a member to end the login's sessions later.
    await run(
      tx,
      tx`select case when rolsuper then 'select 1' else format('grant %I to %I', ${name}::text, current_user) end as statement
      from pg_roles where rolname = current_user`,
    );
    await run(tx, tx`select format('comment on role %I is %L', ${name}::text, ${MADE_BY_US}::text) as statement`);
    // The settings apply in every database of the server, because the role may read every warehouse there.
    for (const [setting, value] of Object.entries(settings))
      await run(
        tx,
        tx`select format('alter role %I set %I = %L',
        ${name}::text, ${setting}::text, ${value}::text) as statement`,
      );
    // Only a user that may set it for a session may set it for a login.
    await run(
      tx,
      tx`select case when has_parameter_privilege('temp_file_limit', 'set') then format('alter role %I set temp_file_limit = %L',
      ${name}::text, ${TEMP_FILES}::text) else 'select 1' end as statement`,
    );
  });
}

/** All logins that may read as analysts, also those that others created, except superusers; in the order of their names. */
export async function listAnalystLogins(sql: SqlOrTransaction): Promise<AnalystLogin[]> {
  return sql<AnalystLogin[]>`
    select r.rolname as name, nullif(r.rolconnlimit, -1) as connections,
      (select substring(one, '^statement_timeout=(\\d+)$') from pg_db_role_setting s, unnest(s.setconfig) one
        where s.setrole = r.oid and s.setdatabase in (0, (select oid from pg_database where datname = current_database()))
          and one like 'statement_timeout=%' order by s.setdatabase desc limit 1)::int as statement_timeout_ms,
      (select count(*)::int from pg_stat_activity a where a.usesysid = r.oid and a.datname = current_database()) as sessions,
      coalesce(shobj_description(r.oid, 'pg_authid'), '') = ${MADE_BY_US} as is_ours
    from pg_roles r
    where r.rolcanlogin and not r.rolsuper and pg_has_role(r.oid, 'analyst', 'member')
    order by r.rolname`;
}

/** Ends the sessions of a login and drops it. */
export async function dropAnalystLogin(sql: Sql, name: string): Promise<void> {
  // A transaction of its own, so that nobody can log in again while the sessions end.
  await run(sql, sql`select format('alter role %I nologin', ${name}::text) as statement`);
  await sql.begin(async (tx) => {
    await tx`select pg_terminate_backend(pid) from pg_stat_activity where usename = ${name}`;
    await run(tx, tx`select format('drop owned by %I', ${name}::text) as statement`);
    await run(tx, tx`select format('drop role %I', ${name}::text) as statement`);
  });
}

/** Statements about roles accept no parameters, so the server itself quotes the values with `format`. */
async function run(tx: SqlOrTransaction, format: PromiseLike<readonly unknown[]>): Promise<void> {
  const [row] = (await format) as readonly { readonly statement: string }[];
  await tx.unsafe(row!.statement);
}
