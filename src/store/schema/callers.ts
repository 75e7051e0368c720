/** The tables of the callers of the service: their keys and their usage. */
import { sql } from 'drizzle-orm';
import { type AnyPgColumn, boolean, check, doublePrecision, integer, text, unique } from 'drizzle-orm/pg-core';
import { bigNumber, bytea, identity, instant, ops } from './columns.ts';

export const apiKey = ops.table(
  'api_key',
  {
    id: identity('id').primaryKey(),
    prefix: text('prefix').notNull(),
    hash: bytea('hash').notNull(),
    /** Tells the operator who holds the key. */
    name: text('name'),
    /** A plan of the API document, or `unlimited`. */
    plan: text('plan').notNull(),
    /** Replace the numbers of the plan. Null means those of the plan. */
    requestsPerMonth: bigNumber('requests_per_month'),
    requestsPerSecond: doublePrecision('requests_per_second'),
    createdAt: instant('created_at').notNull(),
    /** The service refuses the key from this instant on. Null if never. */
    expiresAt: instant('expires_at'),
    revokedAt: instant('revoked_at'),
    replacedBy: integer('replaced_by').references((): AnyPgColumn => apiKey.id),
    /** The holder may open the dashboard from anywhere, and use its actions. */
    isOperator: boolean('is_operator').notNull().default(false),
  },
  (t) => [
    unique('api_key_prefix').on(t.prefix),
    check('api_key_plan', sql`plan in ('free', 'starter', 'pro', 'business', 'ultimate', 'enterprise', 'unlimited')`),
    check('api_key_hash', sql`octet_length(hash) = 32`),
  ],
);

export const apiUsage = ops.table('api_usage', {
  subject: text('subject').primaryKey(),
  monthStart: instant('month_start').notNull(),
  monthSpent: bigNumber('month_spent').notNull(),
  monthLeased: bigNumber('month_leased').notNull().default(0),
  dayStart: instant('day_start').notNull(),
  daySpent: bigNumber('day_spent').notNull(),
  updatedAt: instant('updated_at').notNull(),
});

/** How full the token bucket of each caller is. The migration makes the table unlogged: after a crash of the server all buckets are full. */
export const apiPace = ops.table('api_pace', {
  subject: text('subject').primaryKey(),
  fullAt: instant('full_at').notNull(),
});

/** Sessions of the dashboard, with their end. A revoked key ends its sessions. */
export const dashboardSession = ops.table(
  'dashboard_session',
  {
    /** SHA-256 of the cookie. */
    tokenHash: bytea('token_hash').primaryKey(),
    keyId: integer('key_id')
      .notNull()
      .references(() => apiKey.id),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at').notNull(),
  },
  () => [check('dashboard_session_token_hash', sql`octet_length(token_hash) = 32`)],
);
