/** Takes requests from the ledger's row. One statement serves the simultaneous takes of one process. */
import type { Clock } from '../clock.ts';
import { createBatcher, SERVE_LATER } from '../core/concurrency/batcher.ts';
import type { Sql } from '../store/connection/connect.ts';
import { openLedger } from '../store/quota/quota.ts';
import { type TakeArgs, type TakeRow, takeRequests } from '../store/quota/quota-take.ts';
import { gapMs } from './adaptive-rate.ts';
import type { LedgerClock } from './clock-offset.ts';
import { permitLifetimeMs } from './gate.ts';
import type { Limits, Quota, Reserved, Spender, Stretch, Take, Unwanted } from './quota.ts';

type TakeDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly ledgerClock: LedgerClock;
  readonly accountId: string;
  readonly limits: Limits;
  readonly perMonthFixed: boolean;
  readonly reserved: () => Reserved | Promise<Reserved>;
  readonly runAheadMs: number;
  readonly graceMs: number;
  readonly probeMs: number;
  readonly lateMs: number | undefined;
  /** Called when the ledger contains failures or refusals of the upstream: the next good answer must then be recorded. */
  readonly onBackoff: () => void;
};

type TakeCall = { readonly spender: Spender; readonly stretch: Stretch | undefined };
type Taken = Take | Unwanted | typeof SERVE_LATER;

/** First come, first served. Takes of different spenders do not wait for each other. */
export function createTake(deps: TakeDeps): Quota['take'] {
  const take = createBatcher<TakeCall, Take | Unwanted>(
    (calls) => takeForAll(deps, calls),
    ({ spender }) =>
      `${spender.class} ${spender.isAccountRequest ?? false} ${spender.isOtherHost ?? false} ${spender.name}`,
  );
  return ((spender: Spender, stretch?: Stretch) => take({ spender, stretch })) as Quota['take'];
}

/**
 * Takes up to one request for each call in one round trip. Either at least one of the calls that still need a request gets one, or all of them
 * are denied. The calls have the same spender.
 */
async function takeForAll(deps: TakeDeps, calls: readonly TakeCall[]): Promise<Taken[]> {
  const { clock, ledgerClock, sql } = deps;
  const args = await argsFor(deps, calls);
  await ledgerClock.ready();
  let sentAt = clock.now();
  let row = await takeRequests(sql, args);
  while (row === null) {
    await openLedger(sql, deps.accountId);
    sentAt = clock.now();
    row = await takeRequests(sql, args);
  }
  if (row.isBackingOff) deps.onBackoff();
  return handOut(deps, calls, row, ledgerClock.shiftMs(sentAt, row.now));
}

async function argsFor(deps: TakeDeps, calls: readonly TakeCall[]): Promise<TakeArgs> {
  const { accountId, limits, perMonthFixed, runAheadMs, graceMs, probeMs } = deps;
  const { spender } = calls[0]!;
  const stretches = calls.flatMap(({ stretch }) => stretch ?? []);
  const isBackfill = spender.class === 'backfill';
  const reserved = await deps.reserved();
  const leave = isBackfill ? reserved : (reserved.account ?? { day: 0, month: 0 });
  return {
    accountId,
    now: deps.ledgerClock.now(),
    wanted: calls.length - stretches.length,
    ifOpen: stretches.length === 0 ? null : { stretches, now: deps.clock.now(), plan: stretches[0]!.plan },
    perMonth: limits.perMonth,
    perMonthFixed,
    perDay: limits.perDay,
    gapMs: gapMs(limits.perSecond),
    // Backfills run ahead half as far. So a scheduled request always fits behind the last grant, even when many backfill requests wait.
    runAheadMs: isBackfill ? runAheadMs / 2 : runAheadMs,
    graceMs,
    probeMs,
    leaveMonth: spender.isAccountRequest ? 0 : leave.month,
    leaveDay: spender.isAccountRequest ? 0 : leave.day,
    isAccountRequest: spender.isAccountRequest ?? false,
    isOtherHost: spender.isOtherHost ?? false,
    spenderClass: spender.class,
    spenderName: spender.name,
  };
}

/** The result of each call. `shiftMs` converts the ledger's instants to our clock. */
function handOut({ graceMs, lateMs }: TakeDeps, calls: readonly TakeCall[], row: TakeRow, shiftMs: number): Taken[] {
  const { denied, granted } = row;
  // On our clock: when the first request may be sent or, after a denial, when to try again.
  const first = row.at + shiftMs;
  // A probe goes alone, and the other processes wait for it. So it may be late without harm.
  const goodFor = row.isProbe ? graceMs : permitLifetimeMs(row.gapMs, graceMs, lateMs);
  const gaps = row.gaps.values();
  let left = granted;
  return calls.map(({ stretch }) => {
    const open = stretch === undefined ? undefined : gaps.next().value!;
    if (open?.length === 0) return { kind: 'unwanted' };
    // Rounded up to a whole millisecond, so that it is never before the instant itself.
    if (denied !== null) return { kind: 'denied', reason: denied, until: Math.ceil(first) };
    if (left === 0) return SERVE_LATER;
    const sendAt = Math.ceil(first + (granted - left--) * row.gapMs);
    return { kind: 'granted', sendAt, goodUntil: sendAt + goodFor, ...(open ? { gaps: open } : {}) };
  });
}
