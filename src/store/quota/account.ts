/** The accounts we have asked as, and what upstream told about each. The key itself is never kept. */
import type { Instant } from '../../clock.ts';
import type { AccountPath } from '../../contract/interface/paths.ts';
import type { PlanName } from '../../contract/plan/plans.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { storableText } from '../connection/storable-text.ts';

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
      ${account.checkedAt}, ${account.monthLimit})
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
    select id, origin, plan, auth_scheme, account_path, month_limit, checked_at
    from ops.account where ${which}`;
}

/** That upstream refused the key of an account: it is not asked again at once. */
export type KeyRefusal = {
  readonly at: Instant;
  /** In a row. */
  readonly times: number;
  /** How the key was sent, as configured. */
  readonly sentAs: 'auto' | 'bearer' | 'bare';
  readonly message: string;
};

export async function readKeyRefusal(sql: Sql, id: string): Promise<KeyRefusal | null> {
  const [row] = await sql<KeyRefusal[]>`
    select refused_at as at, refusals as times, refused_as as sent_as, refusal as message
    from ops.account where id = ${id} and refused_at is not null`;
  return row ?? null;
}

/** Once more than before. Resolves to how it stands then. */
export async function saveKeyRefusal(
  sql: Sql,
  { id, origin, plan }: SavedAccount,
  { at, sentAs, message }: Omit<KeyRefusal, 'times'>,
): Promise<KeyRefusal> {
  const [row] = await sql<{ times: number }[]>`
    insert into ops.account as a (id, origin, plan, refused_at, refusals, refused_as, refusal)
    values (${id}, ${origin}, ${plan}, ${at}, 1, ${sentAs}, ${storableText(message)})
    on conflict (id) do update set refused_at = excluded.refused_at, refusals = a.refusals + 1, refused_as = excluded.refused_as,
      refusal = excluded.refusal
    returning refusals as times`;
  return { at, times: row!.times, sentAs, message };
}

/** Whoever may ask again is one only: the others find it asked just now. */
export async function mayAskAgain(sql: Sql, id: string, known: KeyRefusal, now: Instant): Promise<boolean> {
  const rows = await sql`
    update ops.account set refused_at = ${now}
    where id = ${id} and refused_at = ${known.at} and refusals = ${known.times} returning id`;
  return rows.length > 0;
}

export async function forgetKeyRefusal(sql: Sql, id: string): Promise<void> {
  await sql`
    update ops.account set refused_at = null, refusals = 0, refused_as = null, refusal = null
    where id = ${id} and refused_at is not null`;
}
