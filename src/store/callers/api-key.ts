/** The keys of the callers of this service: stored as their SHA-256, found by their prefix. */
import { sql as raw } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { tables, updateRows } from '../connection/tables.ts';
import { apiKey } from '../schema/callers.ts';

type Row = Readonly<typeof apiKey.$inferSelect>;

export type ApiKeyTerms = Pick<
  Row,
  'name' | 'plan' | 'requestsPerMonth' | 'requestsPerSecond' | 'expiresAt' | 'isOperator'
>;

export type ApiKey = Omit<Row, 'hash' | 'replacedBy'> & {
  /** The prefix of the key that took its place. */
  readonly replacedBy: string | null;
  /** The first of the keys that replaced each other: the requests of all of them are counted there. */
  readonly accountId: number;
};

export type HashedApiKey = ApiKey & { readonly hash: Uint8Array };

/** What a key has asked of the service; null where it has asked nothing yet. */
export type ApiKeyUse = ApiKey & {
  /** Used, as far as processes have told. */
  readonly thisMonth: number;
  /** Leased by processes and not used: counted against the limit until it is given back. */
  readonly leased: number;
  readonly lastSeenAt: Instant | null;
};

export async function createApiKey(
  sql: SqlOrTransaction,
  terms: ApiKeyTerms,
  { prefix, hash, now }: { readonly prefix: string; readonly hash: Uint8Array; readonly now: Instant },
): Promise<ApiKey> {
  const [row] = await tables(sql)
    .insert(apiKey)
    .values({ prefix, hash, ...terms, createdAt: now })
    .returning({ id: apiKey.id });
  const { id } = row!;
  return { id, prefix, ...terms, createdAt: now, revokedAt: null, replacedBy: null, accountId: id };
}

/** Null when there is none with this prefix. */
export async function findApiKey(sql: SqlOrTransaction, prefix: string): Promise<HashedApiKey | null> {
  const [row] = await sql<HashedApiKey[]>`select ${columns(sql)}, k.hash from ops.api_key k where k.prefix = ${prefix}`;
  return row ?? null;
}

/** Oldest first. `month`: the begin of the month whose requests are counted. */
export async function listApiKeys(
  sql: SqlOrTransaction,
  { month, all, now }: { readonly month: Instant; readonly all: boolean; readonly now: Instant },
): Promise<ApiKeyUse[]> {
  return sql<ApiKeyUse[]>`
    select ${columns(sql)},
      (case when u.month_start >= ${month} then u.month_spent - u.month_leased else 0 end)::float8 as this_month,
      (case when u.month_start >= ${month} then u.month_leased else 0 end)::float8 as leased,
      greatest(u.updated_at, (select max(s.created_at) from ops.dashboard_session s where s.key_id = k.id)) as last_seen_at
    from ops.api_key k left join ops.api_usage u on u.subject = 'key:' || ${account(sql)}
    where ${all} or (k.revoked_at is null and (k.expires_at is null or k.expires_at > ${now}))
    order by k.id`.then((rows) =>
    rows.map((row) => ({ ...row, thisMonth: row.thisMonth ?? 0, leased: row.leased ?? 0 })),
  );
}

/** False when it was revoked already, or does not exist. */
export async function revokeApiKey(sql: SqlOrTransaction, prefix: string, now: Instant): Promise<boolean> {
  const count = await updateRows(sql, apiKey, { prefix, revokedAt: null }, { revokedAt: now });
  return count > 0;
}

/** The key `by` replaces the key `prefix`: at once, or at `until`, up to which both are valid. */
export async function replaceApiKey(
  sql: SqlOrTransaction,
  prefix: string,
  { by, until, now }: { readonly by: number; readonly until: Instant; readonly now: Instant },
): Promise<void> {
  const end = until <= now ? { revokedAt: now } : { expiresAt: raw`least(${apiKey.expiresAt}, ${until}::timestamptz)` };
  await updateRows(sql, apiKey, { prefix }, { replacedBy: by, ...end });
}

function columns(sql: SqlOrTransaction) {
  return sql`k.id, k.prefix, k.name, k.plan, k.requests_per_month::float8,
    k.requests_per_second, k.created_at, k.expires_at, k.revoked_at, k.is_operator,
    (select r.prefix from ops.api_key r where r.id = k.replaced_by) as replaced_by, ${account(sql)} as account_id`;
}

/** A key takes the place of one that is older, so the first of them has the lowest number. */
function account(sql: SqlOrTransaction) {
  return sql`(with recursive earlier as (
    select k.id union all select o.id from earlier e join ops.api_key o on o.replaced_by = e.id
  ) select min(id) from earlier)`;
}
