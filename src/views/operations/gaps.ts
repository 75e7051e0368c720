/** The gaps: spans that are wanted and not covered, with the reason (`market.gaps`). */
import type { Instant } from '../../clock.ts';
import type { SeriesName } from '../../core/interval.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { matching, type SeriesFilter } from './series-filter.ts';

export const GAP_REASONS = [
  'not asked yet',
  'implausible',
  'provisional',
  'unconfirmed',
  'malformed',
  'history limit',
  'interval',
  'unknown coin',
  'forbidden',
  'bad request',
] as const;
export type GapReason = (typeof GAP_REASONS)[number];

export const REFUSALS: readonly GapReason[] = ['history limit', 'interval', 'unknown coin', 'forbidden', 'bad request'];

/** Whether the upstream refuses these slots. The other reasons mean that they were not requested yet, or have no final answer. */
export function isRefusal(reason: GapReason): boolean {
  return REFUSALS.includes(reason);
}

export type Gap = SeriesName & {
  readonly symbol: string;
  /** Null: the gap has no beginning. */
  readonly from: Instant | null;
  readonly to: Instant | null;
  readonly slots: number;
  readonly reason: GapReason;
  readonly detail: string | null;
  /** When it can be requested again; null when that does not depend on time. */
  readonly nextAskAt: Instant | null;
};

export type GapFilter = SeriesFilter & { readonly reason?: GapReason | undefined };

/** The gaps by coin, quote, interval and time, one page at a time, so that memory stays flat. */
export async function* readGapRows(sql: Sql, filter: GapFilter, limit: number | null): AsyncGenerator<Gap> {
  const pages = sql<Gap[]>`
    select coin_id, symbol, quote, interval, gap_from as from, gap_to as to, slots, reason, detail, next_ask_at
    from market.gaps
    where ${matching(sql, filter)} ${filter.reason === undefined ? sql`` : sql`and reason = ${filter.reason}`}
    order by coin_id, quote, interval, gap_from
    ${limit === null ? sql`` : sql`limit ${limit}`}`.cursor(500);
  for await (const page of pages) {
    for (const gap of page) {
      yield { ...gap, from: finite(gap.from), to: finite(gap.to), nextAskAt: finite(gap.nextAskAt) };
    }
  }
}

function finite(at: Instant | null): Instant | null {
  return at === null || !Number.isFinite(at) ? null : at;
}

export type GapTotal = {
  readonly reason: GapReason;
  readonly gaps: number;
  /** All missing slots with this reason; the sum over all reasons is `slotsMissing` of the status. */
  readonly slots: number;
  /** Of these, the slots too recent for a final answer; the sum is `slotsUnsettled` of the status. */
  readonly tooYoung: number;
};

/** How many gaps and slots each reason has, most slots first. */
export async function readGapTotals(sql: Sql, filter: GapFilter): Promise<GapTotal[]> {
  return sql<GapTotal[]>`
    select reason, count(*) as gaps, sum(slots)::bigint as slots, sum(greatest(0,
        ceil(date_part('epoch', gap_to) / ops.seconds_of(interval))
        - ceil(date_part('epoch', greatest(gap_from, ops.settled_until(interval))) / ops.seconds_of(interval))
      ))::bigint as too_young
    from market.gaps
    where ${matching(sql, filter)} ${filter.reason === undefined ? sql`` : sql`and reason = ${filter.reason}`}
    group by reason order by slots desc, reason`;
}
