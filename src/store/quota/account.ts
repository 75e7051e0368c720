/** The accounts that Chandler has used, and what the upstream reported about each. The key itself is never stored. */
import { and, isNotNull, sql as raw } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { takeLock } from '../connection/lock.ts';
import { matches, tables, updateRows } from '../connection/tables.ts';
import { account } from '../schema/accounts.ts';
import { storableText } from '../values/storable-text.ts';

type Row = Readonly<typeof account.$inferSelect>;

const SAVED = {
  id: account.id,
  origin: account.origin,
  plan: account.plan,
  authScheme: account.authScheme,
  accountPath: account.accountPath,
  checkedAt: account.checkedAt,
  monthLimit: account.monthLimit,
};
export type SavedAccount = Pick<Row, keyof typeof SAVED>;

export async function saveAccount(sql: SqlOrTransaction, saved: SavedAccount): Promise<void> {
  await tables(sql).insert(account).values(saved).onConflictDoUpdate({ target: account.id, set: saved });
}

/** Makes this account the current one: the views use its plan, and only its refusals count. */
export async function makeCurrentAccount(sql: Sql, id: string): Promise<void> {
  if ((await currentAccount(sql))?.id === id) return;
  await sql.begin(async (tx) => {
    await takeLock(tx, 'current account');
    await updateRows(tx, account, { isCurrent: true }, { isCurrent: false });
    await updateRows(tx, account, { id }, { isCurrent: true });
  });
}

export function readAccount(sql: SqlOrTransaction, id: string): Promise<SavedAccount | null> {
  return findAccount(sql, { id });
}

/** The account of the latest run; null before the first run. */
export function currentAccount(sql: SqlOrTransaction): Promise<SavedAccount | null> {
  return findAccount(sql, { isCurrent: true });
}

async function findAccount(sql: SqlOrTransaction, which: Partial<Row>): Promise<SavedAccount | null> {
  const [row] = await tables(sql).select(SAVED).from(account).where(matches(account, which));
  return row ?? null;
}

/** The upstream refused the key of an account: Chandler waits before it tries the key again. */
export type KeyRefusal = {
  /** The latest refusal, or when a process began to try again. */
  readonly at: Instant;
  /** The first refusal since the key was last accepted. */
  readonly since: Instant;
  /** Refusals in a row. */
  readonly times: number;
  /** How the key was sent, as configured. */
  readonly sentAs: NonNullable<Row['refusedScheme']>;
  readonly message: string;
};

export async function readKeyRefusal(sql: Sql, id: string): Promise<KeyRefusal | null> {
  const [row] = await tables(sql).select().from(account).where(matches(account, { id }));
  if (row === undefined || row.refusedAt === null) return null;
  const { refusedAt: at, refusedSince, refusals: times, refusedScheme, refusal } = row;
  return { at, since: refusedSince ?? at, times, sentAs: refusedScheme!, message: refusal! };
}

/** Counts one more refusal. Resolves to the state afterwards. */
export async function saveKeyRefusal(
  sql: Sql,
  { id, origin, plan }: SavedAccount,
  { at, sentAs, message }: Omit<KeyRefusal, 'times' | 'since'>,
): Promise<KeyRefusal> {
  const refused = { refusedAt: at, refusedScheme: sentAs, refusal: storableText(message) };
  const [row] = await tables(sql)
    .insert(account)
    .values({ id, origin, plan, refusals: 1, refusedSince: at, ...refused })
    .onConflictDoUpdate({
      target: account.id,
      set: {
        refusals: raw`${account.refusals} + 1`,
        refusedSince: raw`coalesce(${account.refusedSince}, excluded.refused_since)`,
        ...refused,
      },
    })
    .returning({ times: account.refusals, since: account.refusedSince });
  return { at, since: row!.since ?? at, times: row!.times, sentAs, message };
}

/** Resolves to true if this process may try the key again. Only one process may: for the others, the row has just changed. */
export async function claimKeyRetry(sql: Sql, id: string, known: KeyRefusal, now: Instant): Promise<boolean> {
  const count = await updateRows(sql, account, { id, refusedAt: known.at, refusals: known.times }, { refusedAt: now });
  return count > 0;
}

export async function forgetKeyRefusal(sql: Sql, id: string): Promise<void> {
  await tables(sql)
    .update(account)
    .set({ refusedAt: null, refusedSince: null, refusals: 0, refusedScheme: null, refusal: null })
    .where(and(matches(account, { id }), isNotNull(account.refusedAt)));
}
