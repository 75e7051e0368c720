/** The ledger's row: reads it, and records what the upstream reported. `quota-take.ts` takes requests from it. */
import type { Instant } from '../../clock.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { tables, updateRows } from '../connection/tables.ts';
import { quota, type quotaSpent } from '../schema/accounts.ts';

/** The account and the time; null = the database's own clock, which all hosts share. */
export type At = { readonly accountId: string; readonly now: Instant | null };

/** The time of the database's clock. */
export async function readDatabaseClock(sql: SqlOrTransaction): Promise<Instant> {
  const [row] = await sql<{ now: Instant }[]>`select clock_timestamp() as now`;
  return row!.now;
}

/** Inserts the account's row if there is none. */
export async function openLedger(sql: SqlOrTransaction, accountId: string): Promise<void> {
  await tables(sql).insert(quota).values({ accountId }).onConflictDoNothing();
}

/** The row of an account. An instant in the past means that there is nothing to wait for. */
export type Ledger = Readonly<Omit<typeof quota.$inferSelect, 'accountId'>>;

/** The account's row, and the time (`At`). Inserts the row if there is none. */
export async function readLedger(
  sql: SqlOrTransaction,
  at: At,
  lock = false,
): Promise<{ readonly ledger: Ledger; readonly now: Instant }> {
  const [row] = await sql<(typeof quota.$inferSelect & { readonly now: Instant })[]>`
    select *, ${nowOf(sql, at)} as now from ops.quota where account_id = ${at.accountId} ${lock ? sql`for update` : sql``}`;
  if (row) {
    const { now, accountId: _, ...ledger } = row;
    return { ledger, now };
  }
  await openLedger(sql, at.accountId);
  return readLedger(sql, at, lock);
}

/**
 * Records what the upstream reported: locks and reads the row, and stores the result of `change`. The next free instant and
 * the day's count belong to `takeRequests` and do not change.
 */
export async function changeLedger(
  sql: Sql,
  at: At,
  change: (ledger: Ledger, now: Instant) => Ledger,
): Promise<Ledger> {
  return (await sql.begin(async (tx) => {
    const { ledger, now } = await readLedger(tx, at, true);
    const next = change(ledger, now);
    const { nextFree, dayStart, daySpent, ...told } = next;
    await updateRows(tx, quota, { accountId: at.accountId }, told);
    return next;
  })) as Ledger;
}

export type SpenderRow = Readonly<Pick<typeof quotaSpent.$inferSelect, 'class' | 'name'>> & {
  readonly day: number;
  readonly month: number;
};

/** The requests of each spender in the current month and day, largest first. */
export function readSpenders(sql: SqlOrTransaction, at: At): Promise<readonly SpenderRow[]> {
  return sql<SpenderRow[]>`
    select class, name, month_spent as month,
      case when day_start = date_trunc('day', now, 'UTC') then day_spent else 0 end as day
    from ops.quota_spent, (select ${nowOf(sql, at)} as now) t
    where account_id = ${at.accountId} and month_start = date_trunc('month', now, 'UTC')
    order by month_spent desc, class, name`;
}

/** `clock_timestamp()` instead of `now()`, which is the start of the transaction, before it waited for the row. */
function nowOf(sql: SqlOrTransaction, { now }: At) {
  return now === null ? sql`clock_timestamp()` : sql`${now}::timestamptz`;
}
