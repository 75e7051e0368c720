/** The ledger's row: as it stands, and what upstream said written down. `quota-take.ts` takes requests from it. */
import type { Instant } from '../../clock.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';

/** Which account, and what time it is: null = the database's own clock, which all hosts share. */
export type At = { readonly accountId: string; readonly now: Instant | null };

/** What time the database has. */
export async function readDatabaseClock(sql: SqlOrTransaction): Promise<Instant> {
  const [row] = await sql<{ now: Instant }[]>`select clock_timestamp() as now`;
  return row!.now;
}

/** Makes the account's row if there is none. */
export async function openLedger(sql: SqlOrTransaction, accountId: string): Promise<void> {
  await sql`insert into ops.quota (account_id) values (${accountId}) on conflict do nothing`;
}

/** What is written down of an account, as it stands; instants that are long past say "nothing to wait for". */
export type Ledger = {
  readonly nextFree: Instant;
  readonly dayStart: Instant;
  readonly daySpent: number;
  readonly monthStart: Instant;
  readonly monthSpent: number;
  /** What upstream says the month allows; null = no limit, or not known. */
  readonly monthLimit: number | null;
  readonly monthLimitKnown: boolean;
  /** ≥ 1: how many times slower than the plan, at `limitedUntil`. */
  readonly paceFactor: number;
  /** When the factor was last changed. */
  readonly limitedAt: Instant;
  readonly limitedUntil: Instant;
  readonly limitedStreak: number;
  readonly limitedMessage: string;
  readonly spentUntil: Instant;
  readonly spentMessage: string;
  /** When the streak last grew. */
  readonly downAt: Instant;
  readonly downUntil: Instant;
  readonly downStreak: number;
  readonly downMessage: string;
  /** Why the next request goes alone. */
  readonly probe: 'unavailable' | 'spent' | null;
  /** Until when the others wait for a probe that is under way. */
  readonly probeUntil: Instant | null;
};

/** The account's row and what time it is there; a row that was never written is an empty one. */
export async function readLedger(
  sql: SqlOrTransaction,
  at: At,
  lock = false,
): Promise<{ readonly ledger: Ledger; readonly now: Instant }> {
  const [row] = await sql<(Ledger & { now: Instant })[]>`
    select ${ledgerColumns(sql)}, ${nowOf(sql, at)} as now
    from ops.quota where account_id = ${at.accountId} ${lock ? sql`for update` : sql``}`;
  if (row) {
    const { now, ...ledger } = row;
    return { ledger, now };
  }
  await openLedger(sql, at.accountId);
  return readLedger(sql, at, lock);
}

/**
 * Writes down what upstream said: reads the row, locked, and puts back what `change` makes of it. The next free instant and
 * the day's count belong to `takeRequests` and stay.
 */
export async function changeLedger(
  sql: Sql,
  at: At,
  change: (ledger: Ledger, now: Instant) => Ledger,
): Promise<Ledger> {
  return (await sql.begin(async (tx) => {
    const { ledger, now } = await readLedger(tx, at, true);
    const next = change(ledger, now);
    await tx`
      update ops.quota set
        month_start = ${next.monthStart}, month_spent = ${next.monthSpent},
        month_limit = ${next.monthLimit}, month_limit_known = ${next.monthLimitKnown},
        pace_factor = ${next.paceFactor}, limited_at = ${next.limitedAt}, limited_until = ${next.limitedUntil},
        limited_streak = ${next.limitedStreak}, limited_message = ${next.limitedMessage},
        spent_until = ${next.spentUntil}, spent_message = ${next.spentMessage},
        down_at = ${next.downAt}, down_until = ${next.downUntil},
        down_streak = ${next.downStreak}, down_message = ${next.downMessage},
        probe = ${next.probe}, probe_until = ${next.probeUntil}
      where account_id = ${at.accountId}`;
    return next;
  })) as Ledger;
}

export type SpenderRow = {
  readonly class: 'scheduled' | 'backfill';
  readonly name: string;
  readonly day: number;
  readonly month: number;
};

/** Who spent how much of the month and day the ledger is in, most first. */
export function readSpenders(sql: SqlOrTransaction, at: At): Promise<readonly SpenderRow[]> {
  return sql<SpenderRow[]>`
    select class, name, month_spent as month,
      case when day_start = date_trunc('day', now, 'UTC') then day_spent else 0 end as day
    from ops.quota_spent, (select ${nowOf(sql, at)} as now) t
    where account_id = ${at.accountId} and month_start = date_trunc('month', now, 'UTC')
    order by month_spent desc, class, name`;
}

function ledgerColumns(sql: SqlOrTransaction) {
  return sql`
    next_free, day_start, day_spent, month_start, month_spent, month_limit, month_limit_known,
    pace_factor, limited_at, limited_until, limited_streak, limited_message, spent_until, spent_message,
    down_at, down_until, down_streak, down_message, probe, probe_until`;
}

/** `clock_timestamp()`, not `now()`: that is when the transaction began, before it waited for the row. */
function nowOf(sql: SqlOrTransaction, { now }: At) {
  return now === null ? sql`clock_timestamp()` : sql`${now}::timestamptz`;
}
