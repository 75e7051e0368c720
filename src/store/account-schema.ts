/** The accounts we ask as, as drizzle sees them. */
import { sql } from 'drizzle-orm';
import { bigint, boolean, check, integer, text } from 'drizzle-orm/pg-core';
import { instant, ops } from './schema.ts';

export const account = ops.table(
  'account',
  {
    id: text('id').primaryKey(),
    origin: text('origin').notNull(),
    plan: text('plan').notNull(),
    authScheme: text('auth_scheme'),
    accountPath: text('account_path'),
    checkedAt: instant('checked_at'),
    monthLimit: bigint('month_limit', { mode: 'number' }),
    isCurrent: boolean('is_current').notNull().default(false),
    refusedAt: instant('refused_at'),
    refusals: integer('refusals').notNull().default(0),
    refusedAs: text('refused_as'),
    refusal: text('refusal'),
  },
  () => [
    check('account_refused_as', sql`refused_as in ('auto', 'bearer', 'bare')`),
    check('account_auth_scheme', sql`auth_scheme in ('bearer', 'bare')`),
    check('account_path', sql`account_path in ('/users/me', '/key/info')`),
  ],
);
