/** The story of one slot: `market.story`, and the facts that only `ops` has: backfills, rules, requests, and claims that need a second opinion. */
import type { Instant } from '../../clock.ts';
import { formatCount, formatDay, formatDuration, formatInstant, formatSeries } from '../../core/format.ts';
import { floorToGrid, INTERVAL_MS, type SeriesName } from '../../core/interval.ts';
import type { Tier } from '../../core/tier.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { readClaims, readRemovedRequests, readRequests, type Slot, type StoryEvent } from './story-requests.ts';

export type StoryQuestion = SeriesName & {
  /** Any instant in the slot. */
  readonly at: Instant;
};

export type Story = {
  /** When the slot opens. */
  readonly from: Instant;
  /** When it closes (exclusive). */
  readonly to: Instant;
  /** Events in order of time. The last ones say what is stored now and what Chandler requests next. */
  readonly events: readonly StoryEvent[];
};

/** The whole story, for the operator. Null if the series does not exist. */
export async function readStory(sql: Sql, question: StoryQuestion, now: Instant): Promise<Story | null> {
  const found = await findSlot(sql, question);
  if (found === null) return null;
  const { slot, series } = found;
  const [stored, ...known] = await Promise.all([
    readEvents(sql, slot),
    readBackfillsOf(sql, slot),
    readRules(sql, slot),
    readRequests(sql, slot),
    readClaims(sql, slot),
    readRemovedRequests(sql, slot),
  ]);
  const next = explainNotRequested(series, now) ?? (await readRefresh(sql, slot, now));
  return asStory(slot, [...stored.past, ...known.flat()].sort(byTime), [...stored.present, ...next]);
}

/** The part that `market` has, without requests, accounts and requesters: for callers of the service. Null if the series does not exist. */
export async function readPublicStory(
  sql: Sql,
  question: StoryQuestion,
  { now, most }: { readonly now: Instant /** At most this many events, the newest. */; readonly most: number },
): Promise<Story | null> {
  const found = await findSlot(sql, question);
  if (found === null) return null;
  const { slot, series } = found;
  const { past, present } = await readEvents(sql, slot, most);
  return asStory(slot, past, [...present, ...(explainNotRequested(series, now) ?? [])]);
}

function asStory({ from, interval }: Slot, past: readonly StoryEvent[], present: readonly StoryEvent[]): Story {
  return { from, to: from + INTERVAL_MS[interval], events: [...past, ...present] };
}

type Series = {
  readonly id: number;
  readonly isWanted: boolean;
  readonly isFinal: boolean;
  readonly isEmptyOnce: boolean;
};

async function findSlot(
  sql: Sql,
  { coinId, interval, quote, at }: StoryQuestion,
): Promise<{ readonly slot: Slot; readonly series: Series } | null> {
  const from = floorToGrid(at, interval);
  const [series] = await sql<Series[]>`
    select id, wanted @> ${from}::timestamptz as is_wanted, covered @> ${from}::timestamptz as is_final,
      empty_once @> ${from}::timestamptz as is_empty_once
    from market.series where coin_id = ${coinId} and interval = ${interval}::market.candle_interval and quote = ${quote}`;
  return series === undefined ? null : { slot: { coinId, interval, quote, from, seriesId: series.id }, series };
}

/** Within one second, which is the precision of a step of evidence, the order is: who wanted the slot, the request, its result. */
function byTime(a: StoryEvent, b: StoryEvent): number {
  const second = ({ at }: StoryEvent) => Math.floor(at / 1000);
  return second(a) - second(b) || rank(a) - rank(b) || a.at - b.at;
}

const FIRST = ['wanted', 'tracked', 'backfill', 'asked'];

function rank({ event }: StoryEvent): number {
  const place = FIRST.indexOf(event);
  return place === -1 ? FIRST.length : place;
}

/** `most`: at most this many events, the newest. */
async function readEvents(sql: Sql, { coinId, interval, quote, from }: Slot, most: number | null = null) {
  const rows = await sql<StoryEvent[]>`
    select at, event, detail
    -- Like market.story, but for exactly this id.
    from ops.story(${coinId}, ${interval}::market.candle_interval, ${from}::timestamptz, ${quote}) with ordinality
    order by ordinality desc limit ${most}`;
  const stored = rows.map((row) => ({ ...row })).reverse();
  const isPresent = ({ event }: StoryEvent) => event === 'now' || event === 'next';
  return { past: stored.filter((row) => !isPresent(row)), present: stored.filter(isPresent) };
}

type BackfillFacts = {
  readonly id: number;
  readonly requestedAt: Instant;
  readonly finishedAt: Instant | null;
  readonly state: string;
  readonly from: Instant;
  readonly to: Instant;
  readonly requestedBy: string | null;
  readonly message: string | null;
  /** For a backfill that names no coins: the number of best-ranked coins. */
  readonly top: number | null;
};

/**
 * Backfills whose span contains the slot, and which name the coin or all coins. Those of the best-ranked coins count if they sent a request about
 * the series, because the coins of a command are not recorded.
 */
async function readBackfillsOf(sql: Sql, { coinId, interval, quote, from, seriesId }: Slot): Promise<StoryEvent[]> {
  const rows = await sql<BackfillFacts[]>`
    with ids as (select array_agg(id) as all_ids from (
      select ${coinId}::text as id union select old_id from market.coin_rename where new_id = ${coinId}
    ) named)
    select b.id, b.requested_at, b.finished_at, b.state, lower(b.span) as "from", upper(b.span) as "to", b.requested_by, b.message,
      case when not coalesce(b.spec->'coins' ?| ids.all_ids, false) then (b.spec->>'top')::int end as top
    from ops.backfill b cross join ids
    where b.interval = ${interval}::market.candle_interval and b.quote = ${quote} and b.span @> ${from}::timestamptz
      and (b.coin_ids && ids.all_ids or b.spec->'coins' ?| ids.all_ids or b.coin_ids is null and b.spec->>'all' = 'true'
        or exists (select from ops.fetch f where f.backfill_id = b.id and f.series_id = ${seriesId}))
    order by b.id`;
  return rows.flatMap((row) => {
    const whose = row.top === null ? '' : ` It is for the ${formatCount(row.top)} best-ranked coins.`;
    const by = row.requestedBy === null ? '' : ` by ${row.requestedBy}`;
    const asked: StoryEvent = {
      at: row.requestedAt,
      event: 'backfill',
      detail:
        `Backfill ${row.id} was requested${by}: ${formatSeries({ interval, quote })} from ${formatBound(row.from)} to ` +
        `${formatBound(row.to)}.${whose}${row.finishedAt === null ? ` It is ${row.state}${reason(row)}.` : ''}`,
    };
    if (row.finishedAt === null) return [asked];
    return [
      asked,
      { at: row.finishedAt, event: 'ended', detail: `Backfill ${row.id} ended: ${row.state}${reason(row)}.` },
    ];
  });
}

function reason({ message }: BackfillFacts): string {
  return message === null ? '' : ` (${message})`;
}

function formatBound(at: Instant): string {
  return Number.isFinite(at) ? formatDay(at) : 'ever';
}

type RuleFacts = {
  readonly tier: Tier;
  readonly top: number | null;
  readonly since: Instant;
  readonly createdAt: Instant;
  readonly targetAgeMs: number;
};

/** The rules of `chandler track` that want the slot by the newest list of coins, and since when the series is tracked. */
async function readRules(sql: Sql, { coinId, interval, quote, from, seriesId }: Slot): Promise<StoryEvent[]> {
  const [rules, tracked] = await Promise.all([
    sql<RuleFacts[]>`
      select t.tier, t.top, t.since, t.created_at, (extract(epoch from t.target_age) * 1000)::float8 as target_age_ms
      from ops.track t
      where t.interval = ${interval}::market.candle_interval and t.quote = ${quote} and t.since <= ${from}::timestamptz
        and (t.coin_id is null or t.coin_id = ${coinId})
        -- The view decides which coins a rule selects. The rank tells which of several rules for best-ranked coins applies.
        and exists (select from ops.track_target a where a.coin_id = ${coinId} and a.interval = t.interval and a.quote = t.quote)
        and (t.tier <> 'top' or exists (select from market.coin c where c.id = ${coinId} and c.rank between 1 and t.top))
      order by t.id`,
    sql<{ trackedAt: Instant; endsAt: Instant | null }[]>`
      select tracked_at, ends_at from ops.tracked where series_id = ${seriesId}`,
  ]);
  const events: StoryEvent[] = rules.map((rule) => ({
    at: rule.createdAt,
    event: 'tracked',
    detail: `A rule of chandler track selects it: ${namesOf(rule, coinId)}, since ${formatDay(rule.since)}, target age ${formatDuration(rule.targetAgeMs)}.`,
  }));
  for (const { trackedAt, endsAt } of tracked) {
    const end = endsAt === null ? '' : ` No rule wants it any more: it ends at ${formatInstant(endsAt)}.`;
    events.push({ at: trackedAt, event: 'tracked', detail: `Chandler began to keep the series fresh.${end}` });
  }
  return events;
}

function namesOf({ tier, top }: RuleFacts, coinId: string): string {
  if (tier === 'list') return coinId;
  return tier === 'all' ? 'all coins' : `the ${formatCount(top!)} best-ranked coins`;
}

/** Why Chandler does not request the slot. Null: `market.gaps` or a refresh decides when Chandler requests it. */
function explainNotRequested({ isWanted, isFinal, isEmptyOnce }: Series, now: Instant): StoryEvent[] | null {
  if (isEmptyOnce && isWanted) return [next(now, HOLE)];
  if (isFinal) return [next(now, 'Chandler does not request it automatically: it has its final answer.')];
  if (!isWanted) return [next(now, 'Chandler does not request it: no backfill and no rule wants it.')];
  return null;
}

/** The next request that is not in `market.gaps`: the one for the newest end of the series. */
async function readRefresh(sql: Sql, slot: Slot, now: Instant): Promise<StoryEvent[]> {
  const [fresh] = await sql<
    {
      targetAgeMs: number;
      refreshAfterMs: number | null;
      askedAt: Instant | null;
      dueAt: Instant | null;
      seenUntil: Instant | null;
      endsAt: Instant | null;
    }[]
  >`
    select (extract(epoch from ti.target_age) * 1000)::float8 as target_age_ms,
      (extract(epoch from coalesce(ti.refresh_after, ti.achievable_age)) * 1000)::float8 as refresh_after_ms, tr.asked_at, tr.seen_until, tr.ends_at,
      least(tr.asked_at, tr.refresh_at) + coalesce(ti.refresh_after, ti.achievable_age) as due_at
    from ops.tracked tr join ops.tier ti on ti.id = tr.tier_id where tr.series_id = ${slot.seriesId}`;
  if (fresh === undefined) return [];
  const { targetAgeMs, refreshAfterMs, askedAt, seenUntil, endsAt } = fresh;
  // The last candle of an ended series must be final first.
  const finalAt = endsAt === null ? null : endsAt + INTERVAL_MS[slot.interval];
  const dueAt = finalAt === null || finalAt <= now ? fresh.dueAt : Math.max(finalAt, fresh.dueAt ?? finalAt);
  // A refresh requests only the newest end, which was not seen yet.
  if (seenUntil !== null && slot.from + 2 * INTERVAL_MS[slot.interval] <= seenUntil) return [];
  const last = askedAt === null ? 'never requested' : `last requested at ${formatInstant(askedAt)}`;
  const due =
    refreshAfterMs === null
      ? 'there is no next request: the service has not planned one yet, or the quota leaves none'
      : `the next request is due ${dueAt === null ? 'now' : `at ${formatInstant(dueAt)}`}`;
  return [
    next(
      now,
      endsAt === null
        ? `The service keeps the newest end of the series fresh (target age ${formatDuration(targetAgeMs)}): ${last}; ${due}.`
        : `No rule wants the series after ${formatInstant(endsAt)}; the service completes it until then: ${last}; ${due}.`,
    ),
  ];
}

const HOLE =
  'Only one answer shows that it is empty. The schedule confirm_holes requests it once more when quota is left over and the plan reaches so far back.';

function next(at: Instant, detail: string): StoryEvent {
  return { at, event: 'next', detail };
}
