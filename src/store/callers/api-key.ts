/** The keys of the callers of this service. They are stored as SHA-256, and found by their prefix. */
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
  /** The prefix of the key that replaced this one; null when none did. */
  readonly replacedBy: string | null;
  /** The id of the first key in a chain of replacements. The requests of all keys of the chain are counted under it. */
  readonly accountId: number;
};

export type HashedApiKey = ApiKey & { readonly hash: Uint8Array };

/** The use of a key. */
export type ApiKeyUse = ApiKey & {
  /** Requests used this month, as far as processes have reported. */
  readonly thisMonth: number;
  /** Requests that processes have leased and not used. They count against the limit until they are returned. */
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

/** All keys, or only the valid ones; oldest first. `month` is the start of the month whose requests are counted. */
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

/** Resolves to false when the key was revoked already, or does not exist. */
export async function revokeApiKey(sql: SqlOrTransaction, prefix: string, now: Instant): Promise<boolean> {
  const count = await updateRows(sql, apiKey, { prefix, revokedAt: null }, { revokedAt: now });
  return count > 0;
}

/** Replaces the key `prefix` by the key `by`, at once or at `until`. Both keys are valid up to `until`. */
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

/** A key replaces an older one, so the first key of a chain has the lowest id. */
function account(sql: SqlOrTransaction) {
  return sql`(with recursive earlier as (
    select k.id union all select o.id from earlier e join ops.api_key o on o.replaced_by = e.id
  ) select min(id) from earlier)`;
}
