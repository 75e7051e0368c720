/** Keys of those who may ask this service: kept by their SHA-256, found by their prefix. */
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';

export type ApiKeyTerms = {
  /** For the operator: who has it. */
  readonly name: string | null;
  /** A plan of the API document, or `unlimited`. */
  readonly plan: string;
  /** Instead of the plan's numbers; null: as the plan says. */
  readonly requestsPerMonth: number | null;
  readonly requestsPerSecond: number | null;
  /** From then on it is refused; null: never. */
  readonly expiresAt: Instant | null;
};

export type ApiKey = ApiKeyTerms & {
  readonly id: number;
  readonly prefix: string;
  readonly createdAt: Instant;
  readonly revokedAt: Instant | null;
  /** The prefix of the key that took its place. */
  readonly replacedBy: string | null;
  /** The first of the keys that took each other's place: what its holder asks is counted there, whichever of them he sends. */
  readonly accountId: number;
};

export type HashedApiKey = ApiKey & { readonly hash: Uint8Array };

/** What a key has asked of the service; null where it has asked nothing yet. */
export type ApiKeyUse = ApiKey & {
  /** Used, as far as processes have told. */
  readonly thisMonth: number;
  /** Taken in advance and not used: counted against the limit until it is given back. */
  readonly inAdvance: number;
  readonly lastSeenAt: Instant | null;
};

export async function createApiKey(
  sql: SqlOrTransaction,
  terms: ApiKeyTerms,
  { prefix, hash, now }: { readonly prefix: string; readonly hash: Uint8Array; readonly now: Instant },
): Promise<ApiKey> {
  const { name, plan, requestsPerMonth, requestsPerSecond, expiresAt } = terms;
  const [row] = await sql<{ id: number }[]>`
    insert into ops.api_key (prefix, hash, name, plan, requests_per_month, requests_per_second, created_at, expires_at)
    values (${prefix}, ${Buffer.from(hash)}, ${name}, ${plan}, ${requestsPerMonth}, ${requestsPerSecond}, ${now},
      ${expiresAt})
    returning id`;
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
      (case when u.month_start >= ${month} then u.month_spent - u.month_held else 0 end)::float8 as this_month,
      (case when u.month_start >= ${month} then u.month_held else 0 end)::float8 as in_advance,
      u.updated_at as last_seen_at
    from ops.api_key k left join ops.api_usage u on u.subject = 'key:' || ${account(sql)}
    where ${all} or (k.revoked_at is null and (k.expires_at is null or k.expires_at > ${now}))
    order by k.id`.then((rows) =>
    rows.map((row) => ({ ...row, thisMonth: row.thisMonth ?? 0, inAdvance: row.inAdvance ?? 0 })),
  );
}

/** From `at` on, which may lie ahead. False when it was taken back already, or is not there. */
export async function revokeApiKey(sql: SqlOrTransaction, prefix: string, now: Instant): Promise<boolean> {
  const { count } = await sql`
    update ops.api_key set revoked_at = ${now} where prefix = ${prefix} and revoked_at is null`;
  return count > 0;
}

/** `prefix` gives way to `by`: at once, or at `until`, up to which both are good. */
export async function replaceApiKey(
  sql: SqlOrTransaction,
  prefix: string,
  { by, until, now }: { readonly by: number; readonly until: Instant; readonly now: Instant },
): Promise<void> {
  await sql`
    update ops.api_key set replaced_by = ${by},
      revoked_at = case when ${until <= now} then ${now}::timestamptz else revoked_at end,
      expires_at = case when ${until <= now} then expires_at else least(expires_at, ${until}) end
    where prefix = ${prefix}`;
}

function columns(sql: SqlOrTransaction) {
  return sql`k.id, k.prefix, k.name, k.plan, k.requests_per_month::float8,
    k.requests_per_second, k.created_at, k.expires_at, k.revoked_at,
    (select r.prefix from ops.api_key r where r.id = k.replaced_by) as replaced_by, ${account(sql)} as account_id`;
}

/** A key takes the place of one that is older, so the first of them has the lowest number. */
function account(sql: SqlOrTransaction) {
  return sql`(with recursive earlier as (
    select k.id union all select o.id from earlier e join ops.api_key o on o.replaced_by = e.id
  ) select min(id) from earlier)`;
}
