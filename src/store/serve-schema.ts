/** The tables of the service's own callers, as drizzle sees them. */
import { sql } from 'drizzle-orm';
import {
  type AnyPgColumn,
  bigint,
  check,
  customType,
  doublePrecision,
  integer,
  text,
  unique,
} from 'drizzle-orm/pg-core';
import { instant, ops } from './schema.ts';

const bytea = customType<{ data: Uint8Array }>({ dataType: () => 'bytea' });

export const apiKey = ops.table(
  'api_key',
  {
    id: integer('id').generatedAlwaysAsIdentity().primaryKey(),
    prefix: text('prefix').notNull(),
    hash: bytea('hash').notNull(),
    name: text('name'),
    plan: text('plan').notNull(),
    requestsPerMonth: bigint('requests_per_month', { mode: 'number' }),
    requestsPerSecond: doublePrecision('requests_per_second'),
    createdAt: instant('created_at').notNull(),
    expiresAt: instant('expires_at'),
    revokedAt: instant('revoked_at'),
    replacedBy: integer('replaced_by').references((): AnyPgColumn => apiKey.id),
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
  monthSpent: bigint('month_spent', { mode: 'number' }).notNull(),
  monthHeld: bigint('month_held', { mode: 'number' }).notNull().default(0),
  dayStart: instant('day_start').notNull(),
  daySpent: bigint('day_spent', { mode: 'number' }).notNull(),
  updatedAt: instant('updated_at').notNull(),
});
