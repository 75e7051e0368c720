/** Takes requests from the ledger's row. Takes of one process that come at the same time are one statement. */
import type { Clock } from '../clock.ts';
import { createBatcher, SERVE_LATER } from '../core/concurrency/batcher.ts';
import type { Sql } from '../store/connection/connect.ts';
import { openLedger } from '../store/quota/quota.ts';
import { type TakeArgs, type TakeRow, takeRequests } from '../store/quota/quota-take.ts';
import { gapMs } from './adaptive-rate.ts';
import type { LedgerClock } from './clock-offset.ts';
import { goodForMs } from './gate.ts';
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
  /** Called when upstream has been failing or refusing: the next good answer must be written down. */
  readonly onBackoff: () => void;
};

type TakeCall = { readonly spender: Spender; readonly stretch: Stretch | undefined };
type Taken = Take | Unwanted | typeof SERVE_LATER;

/** Who comes first is served first. Takes of different spenders do not wait for each other. */
export function createTake(deps: TakeDeps): Quota['take'] {
  const take = createBatcher<TakeCall, Take | Unwanted>(
    (calls) => takeForAll(deps, calls),
    ({ spender }) => `${spender.class} ${spender.asksAccount ?? false} ${spender.name}`,
  );
  return ((spender: Spender, stretch?: Stretch) => take({ spender, stretch })) as Quota['take'];
}

/**
 * Takes up to one request for each call in one round trip: at least one of those who still want one is granted it, or all are denied.
 * The calls have the same spender.
 */
async function takeForAll(deps: TakeDeps, calls: readonly TakeCall[]): Promise<Taken[]> {
  const { clock, ledgerClock, sql } = deps;
  const args = await argsFor(deps, calls);
  await ledgerClock.ready();
  let askedAt = clock.now();
  let row = await takeRequests(sql, args);
  while (row === null) {
    await openLedger(sql, deps.accountId);
    askedAt = clock.now();
    row = await takeRequests(sql, args);
  }
  if (row.isBackingOff) deps.onBackoff();
  return handOut(deps, calls, row, { runAheadMs: args.runAheadMs, shiftMs: ledgerClock.shiftMs(askedAt, row.now) });
}

async function argsFor(deps: TakeDeps, calls: readonly TakeCall[]): Promise<TakeArgs> {
  const { accountId, limits, perMonthFixed, runAheadMs, graceMs, probeMs } = deps;
  const { spender } = calls[0]!;
  const asked = calls.flatMap(({ stretch }) => stretch ?? []);
  const isBackfill = spender.class === 'backfill';
  const reserved = await deps.reserved();
  const leave = isBackfill ? reserved : (reserved.account ?? { day: 0, month: 0 });
  return {
    accountId,
    now: deps.ledgerClock.now(),
    wanted: calls.length - asked.length,
    ifOpen: asked.length === 0 ? null : { asked, now: deps.clock.now(), plan: asked[0]!.plan },
    perMonth: limits.perMonth,
    perMonthFixed,
    perDay: limits.perDay,
    gapMs: gapMs(limits.perSecond),
    // Backfill looks half as far ahead: however many backfill requests wait, a scheduled one finds its place behind the last grant.
    runAheadMs: isBackfill ? runAheadMs / 2 : runAheadMs,
    graceMs,
    probeMs,
    leaveMonth: spender.asksAccount ? 0 : leave.month,
    leaveDay: spender.asksAccount ? 0 : leave.day,
    asksAccount: spender.asksAccount ?? false,
    spenderClass: spender.class,
    spenderName: spender.name,
  };
}

/** The result of each call. `shiftMs` brings the ledger's instants to our clock. */
function handOut(
  { graceMs, lateMs }: TakeDeps,
  calls: readonly TakeCall[],
  row: TakeRow,
  { runAheadMs, shiftMs }: { readonly runAheadMs: number; readonly shiftMs: number },
): Taken[] {
  const { denied, granted } = row;
  // When the first request may be sent, or is worth asking for again, on our clock.
  const first = row.at + shiftMs;
  // A probe goes alone: nobody is in its way when it is late, and everybody waits for it.
  const goodFor = row.isProbe ? graceMs : goodForMs(row.gapMs, graceMs, lateMs);
  const gaps = row.gaps.values();
  // The pace allows the next request only at this instant. When it is too far ahead, the ledger would deny it: it need not be read for that.
  const next = row.at + granted * row.gapMs;
  const rest: Taken =
    next > row.now + runAheadMs && !row.isProbe
      ? { kind: 'denied', reason: 'queue', until: Math.ceil(next - runAheadMs + shiftMs) }
      : SERVE_LATER;
  let left = granted;
  return calls.map(({ stretch }) => {
    const open = stretch === undefined ? undefined : gaps.next().value!;
    if (open?.length === 0) return { kind: 'unwanted' };
    // Never before the instant itself: rounded up to the clock's millisecond.
    if (denied !== null) return { kind: 'denied', reason: denied, until: Math.ceil(first) };
    if (left === 0) return rest;
    const sendAt = Math.ceil(first + (granted - left--) * row.gapMs);
    return { kind: 'granted', sendAt, goodUntil: sendAt + goodFor, ...(open ? { gaps: open } : {}) };
  });
}
