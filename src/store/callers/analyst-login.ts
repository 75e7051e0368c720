/** Logins of analysts: members of the role `analyst`, in UTC and read-only, with time limits. */
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';

export type AnalystLogin = {
  readonly name: string;
  /** Connections at most; null: unlimited. */
  readonly connections: number | null;
  /** Of one statement, in this database or in all of the server; null: no limit that `chandler analyst` set. */
  readonly statementTimeoutMs: number | null;
  /** Connected now. */
  readonly sessions: number;
  /** False: somebody else made it. */
  readonly isOurs: boolean;
};

export type NewAnalystLogin = {
  readonly name: string;
  /** As `scramVerifier` makes it. */
  readonly verifier: string;
  readonly connections: number;
  readonly statementTimeoutMs: number;
};

const MADE_BY_US = 'Made by chandler analyst.';
/** Without a statement: a forgotten transaction keeps old versions of rows from being removed. */
const IDLE_IN_TRANSACTION_MS = 60_000;
/** Waits for a lock, which a reader needs only while the schema is changed. */
const LOCK_MS = 10_000;
/** Of each process of the server: a statement that sorts without end must not fill the disk. A session cannot raise it, unlike the others. */
const TEMP_FILES = '2GB';

/** @throws what Postgres says: 42710 when there is such a role, 42501 when this user may not make one. */
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
    // To end its sessions later, a user that is no superuser must be a member.
    await run(
      tx,
      tx`select case when rolsuper then 'select 1' else format('grant %I to %I', ${name}::text, current_user) end as statement
      from pg_roles where rolname = current_user`,
    );
    await run(tx, tx`select format('comment on role %I is %L', ${name}::text, ${MADE_BY_US}::text) as statement`);
    // In every database of the server: the role may read each warehouse there.
    for (const [setting, value] of Object.entries(settings))
      await run(
        tx,
        tx`select format('alter role %I set %I = %L',
        ${name}::text, ${setting}::text, ${value}::text) as statement`,
      );
    // Only who may set it for a session may set it for a login.
    await run(
      tx,
      tx`select case when has_parameter_privilege('temp_file_limit', 'set') then format('alter role %I set temp_file_limit = %L',
      ${name}::text, ${TEMP_FILES}::text) else 'select 1' end as statement`,
    );
  });
}

/** In the order of their names: all logins that may read as analysts, whoever made them, without superusers. */
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

/** Ends its sessions and removes it. */
export async function dropAnalystLogin(sql: Sql, name: string): Promise<void> {
  // By itself, so that nobody logs in again while the sessions end.
  await run(sql, sql`select format('alter role %I nologin', ${name}::text) as statement`);
  await sql.begin(async (tx) => {
    await tx`select pg_terminate_backend(pid) from pg_stat_activity where usename = ${name}`;
    await run(tx, tx`select format('drop owned by %I', ${name}::text) as statement`);
    await run(tx, tx`select format('drop role %I', ${name}::text) as statement`);
  });
}

/** Statements about roles take no parameters: the server itself quotes what is put into them. */
async function run(tx: SqlOrTransaction, format: PromiseLike<readonly unknown[]>): Promise<void> {
  const [row] = (await format) as readonly { readonly statement: string }[];
  await tx.unsafe(row!.statement);
}
