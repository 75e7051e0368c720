/** Reads the slots of a target that still have no final answer, with the reason and their fate (`market.gaps`). */
import type { Instant } from '../../clock.ts';
import type { SeriesSpan } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { presentIdsOf } from '../../store/upkeep/rename.ts';
import { type GapReason, REFUSALS } from './gaps.ts';
import { matching } from './series-filter.ts';

/**
 * `too young`: not old enough to be final, whatever was answered. `later`: a later run requests it. `refused`: the upstream does not provide it.
 * `failed`: every attempt of this run failed, or the upstream's last answer cannot be used, and Chandler does not request it again.
 */
export type SlotStatus = 'too young' | 'later' | 'refused' | 'failed';

export type RemainingSlots = {
  /** As in `market.gaps`. */
  readonly reason: GapReason;
  /** The name is that of the field in `--json`. */
  readonly fate: SlotStatus;
  readonly slots: number;
  /** When the first of these slots can be requested again; null when that does not depend on time. */
  readonly nextAskAt: Instant | null;
};

/** On the grid. Only the requested slots count, whatever else is wanted of these series. */
type RemainingQuery = SeriesSpan & {
  /** Answered slots that open at or after this are too young to be final. */
  readonly settledUntil: Instant;
  /** Slots that open at or after this are too young even if they were never requested: an answer now would not be final; null: none. */
  readonly openFrom: Instant | null;
  /** Slots that are due by then are counted separately from those that are due later; absent: all together. */
  readonly dueBy?: Instant;
  /** The spans whose requests failed. */
  readonly failed: readonly { readonly coinId: string; readonly span: Span }[];
};

/**
 * By reason and fate, most slots first. The fate of a slot follows only from its row in `market.gaps`: a slot whose reason is not a refusal is
 * requested again, unless its `next_ask_at` is infinite. Slots of a coin that has another id since count, too.
 */
export async function readRemaining(sql: SqlOrTransaction, query: RemainingQuery): Promise<RemainingSlots[]> {
  const { span, interval, settledUntil, openFrom, failed, dueBy = null } = query;
  const coinIds = [...query.coinIds, ...(await presentIdsOf(sql, query.coinIds)).values()];
  return sql<RemainingSlots[]>`
    with failed as (
      select coin_id, range_agg(span) as spans
      from unnest(${failed.map(({ coinId }) => coinId)}::text[], ${failed.map((one) => one.span)}::tstzrange[]) as f(coin_id, span)
      group by coin_id
    ), gap as (
      select g.reason, g.next_ask_at, tstzmultirange(tstzrange(g.gap_from, g.gap_to) * ${span}::tstzrange) as part,
        coalesce(f.spans, '{}') as failed,
        tstzmultirange(case when g.next_ask_at is not null and g.reason <> 'not asked yet' then tstzrange(${settledUntil}, null) else 'empty' end)
          + tstzmultirange(tstzrange(coalesce(${openFrom}::timestamptz, 'infinity'), null)) as young
      from market.gaps g left join failed f using (coin_id)
      where ${matching(sql, { ...query, coinIds })}
    ), sorted as (
      select gap.reason, of.fate, of.spans, case when isfinite(gap.next_ask_at) then gap.next_ask_at end as next_ask_at
      from gap cross join lateral (
        select 'refused' as fate, part as spans where reason = any(${REFUSALS as string[]}::text[])
        union all
        select own.* from (values
          ('failed', part * failed),
          ('too young', (part - failed) * young),
          (case when isfinite(next_ask_at) is false then 'failed' else 'later' end, part - failed - young)
        ) as own(fate, spans)
        where reason <> all(${REFUSALS as string[]}::text[])
      ) of
    )
    select reason, fate, sum(n.slots)::bigint as slots, min(next_ask_at) as next_ask_at
    from sorted cross join lateral unnest(spans) r
    cross join lateral (
      select ceil(date_part('epoch', upper(r)) / ops.seconds_of(${interval}::market.candle_interval))
        - ceil(date_part('epoch', lower(r)) / ops.seconds_of(${interval}::market.candle_interval)) as slots
    ) n
    where n.slots > 0
    group by reason, fate, coalesce(next_ask_at > ${dueBy}::timestamptz, false) order by slots desc, reason, fate`;
}
