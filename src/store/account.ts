/** The accounts we have asked as, and what upstream told about each. The key itself is never kept. */
import type { Instant } from '../clock.ts';
import type { AccountPath } from '../contract/paths.ts';
import type { PlanName } from '../contract/plans.ts';
import type { Sql, SqlOrTransaction } from './connect.ts';

export type SavedAccount = {
  /** `anonymous@<host>` or `key-<first 12 hex digits of the key's SHA-256>@<host>`. */
  readonly id: string;
  readonly origin: string;
  readonly plan: PlanName;
  /** How the key has to be sent; null until found out. */
  readonly authScheme: 'bearer' | 'bare' | null;
  /** Which path tells about the account; null until found out. */
  readonly accountPath: AccountPath | null;
  /** When upstream last told about it. */
  readonly checkedAt: Instant | null;
  /** Null: unlimited, or not known. */
  readonly monthLimit: number | null;
};

export async function saveAccount(sql: SqlOrTransaction, account: SavedAccount): Promise<void> {
  await sql`
    insert into ops.account (id, origin, plan, auth_scheme, account_path, checked_at, month_limit)
    values (${account.id}, ${account.origin}, ${account.plan}, ${account.authScheme}, ${account.accountPath},
      to_timestamp(${account.checkedAt === null ? null : account.checkedAt / 1000}::float8), ${account.monthLimit})
    on conflict (id) do update
    set origin = excluded.origin, plan = excluded.plan, auth_scheme = excluded.auth_scheme,
      account_path = excluded.account_path, checked_at = excluded.checked_at, month_limit = excluded.month_limit`;
}

/** Any fixed number: whoever holds this advisory lock is changing which account is current. */
const LOCK = 4_242_002;

/** Whose plan the views go by: refusals made to it count from now on, those made to others no longer. */
export async function makeCurrentAccount(sql: Sql, id: string): Promise<void> {
  if ((await currentAccount(sql))?.id === id) return;
  await sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(${LOCK})`;
    await tx`update ops.account set is_current = false where is_current`;
    await tx`update ops.account set is_current = true where id = ${id}`;
  });
}

export async function readAccount(sql: SqlOrTransaction, id: string): Promise<SavedAccount | null> {
  return (await select(sql, sql`id = ${id}`))[0] ?? null;
}

/** The account of the latest run; null before the first. */
export async function currentAccount(sql: SqlOrTransaction): Promise<SavedAccount | null> {
  return (await select(sql, sql`is_current`))[0] ?? null;
}

function select(sql: SqlOrTransaction, which: ReturnType<SqlOrTransaction>) {
  return sql<SavedAccount[]>`
    select id, origin, plan, auth_scheme as "authScheme", account_path as "accountPath", month_limit as "monthLimit",
      (extract(epoch from checked_at) * 1000)::float8 as "checkedAt"
    from ops.account where ${which}`;
}
