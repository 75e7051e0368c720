/** The heart's transaction: candles, coverage, what stays pending, and the record of the request become true together or not at all. */
import type { Instant } from '../../clock.ts';
import type { CandleColumns } from '../../core/candle.ts';
import { INTERVAL_MS, type Interval, settledUntil } from '../../core/interval.ts';
import { contains, intersect, normalize, type Span, type Spans, subtract, union } from '../../core/span.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { parseMultirange, parseRange } from '../connection/multirange.ts';
import { type FetchRow, recordFetch } from '../work/fetch.ts';
import { clipPending, type Pending, replacePending } from '../work/second-opinion.ts';
import { keepRevised, type OpenCandle, removeCandles, replaceOpenCandles, writeCandles } from './candle.ts';
import { type QuarantinedRow, quarantine, repeatedRows } from './quarantine.ts';
import { cutRollups } from './rollup.ts';
import { markSeen } from './series.ts';

export type ChunkAnswer = {
  readonly series: { readonly id: number; readonly interval: Interval };
  /** What was asked. */
  readonly span: Span;
  readonly asOf: Instant;
  readonly candles: CandleColumns;
  /** Of the candles those that had not closed, and until when their data reach. */
  readonly open: readonly OpenCandle[];
  readonly quarantined: readonly QuarantinedRow[];
  readonly fetch: Omit<FetchRow, 'stored' | 'revised' | 'quarantined' | 'answeredSlots' | 'unconfirmedSlots'>;
};

/** Slots that an answer did not have, though its edges prove nothing by themselves. */
export type UnconfirmedAnswer = { readonly asOf: Instant; readonly spans: Spans };

/** What is known of the asked span from other answers, whichever of them were given first. */
export type Known = {
  readonly pending: readonly Pending[];
  /** Those that no younger answer has contradicted: it has said nothing about any slot of such a span. */
  readonly unconfirmedAnswers: readonly UnconfirmedAnswer[];
  /** Where a younger answer has said something. */
  readonly answeredByYounger: Spans;
  /** As-of instant of the youngest list of coins that has this one. */
  readonly listedAt: Instant;
  /** Slots whose rows were quarantined by the answer before exactly as they are now. */
  readonly repeated: ReadonlySet<Instant>;
};

/** What an answer proves. */
export type Verdict = {
  /** What it says by itself: slots with a candle, provisional ones too, and slots with candles on both sides. */
  readonly answeredSlots: Spans;
  /** The part of `answeredSlots` that has settled: each slot in it has its candle in the answer, or is empty. */
  readonly proven: Spans;
  /** Missing at an edge. Another answer without them, long enough before or after, proves them empty. */
  readonly unconfirmedSlots: Spans;
  /** The part of `unconfirmedSlots` for which that other answer is there. */
  readonly confirmed: Spans;
  /** What takes the place of everything pending inside the span that was asked. */
  readonly pending: readonly Pending[];
};

export type ChunkCommit = {
  readonly stored: number;
  readonly revised: number;
  readonly quarantined: number;
  readonly covered: Spans;
};

/**
 * Stores one answer in one transaction. `weigh` is asked under the lock what the answer proves, given what is known.
 *
 * About each slot the youngest answer that says something of it has the last word, in whatever order answers are stored: its candle
 * replaces the one that is there, its proof of absence removes it, and either keeps old final values as a revision. Where a
 * younger answer has said something, this one changes nothing. Unconfirmed slots count only where no final answer has said anything.
 */
export function storeChunk(sql: Sql, answer: ChunkAnswer, weigh: (known: Known) => Verdict): Promise<ChunkCommit> {
  return sql.begin(async (tx) => {
    const state = await lockSeries(tx, answer);
    const { series, span, candles, asOf } = answer;
    const { covered, pending: pendingBefore, unconfirmedAnswers, answeredByYounger, listedAt } = state;
    const malformed = pendingBefore.some((p) => p.claim === 'malformed');
    const repeated = malformed ? await repeatedRows(tx, series.id, answer.quarantined) : new Set<Instant>();
    const verdict = weigh({ pending: pendingBefore, unconfirmedAnswers, answeredByYounger, listedAt, repeated });

    const ours = subtract([span], answeredByYounger);
    const final = intersect(verdict.proven, ours);
    const granted = subtract(union(final, verdict.confirmed), covered);
    const coveredBefore = intersect(covered, final);

    const known = state.hasRows || covered.length > 0;
    const seen = coveredBefore.length === 0 ? null : pick(candles, coveredBefore);
    const before = seen === null ? null : await rowsIn(tx, answer, coveredBefore);
    const changed = seen === null ? [] : await keepRevised(tx, series, seen, asOf);
    // A provisional candle never goes where a final answer is: that one is younger.
    const writable = union(final, subtract(ours, covered));
    const written = writeCandles(tx, series, pick(candles, writable), known ? 'overwrite' : 'fresh');
    const empty = subtract(union(final, intersect(granted, verdict.confirmed)), slotsOf(candles, series.interval));
    const removed =
      state.hasRows && empty.length > 0
        ? await removeCandles(tx, series, { bounds: span, spans: empty, final: covered, seenAt: asOf })
        : [];
    // Where nothing was, it is known beforehand what will be written: the statements after it need not wait for it.
    const stored = known ? await written : candles.openTime.length;

    // Candles inside coverage: those that came with the newly granted spans, and how many more or fewer the others have now.
    const difference = before === null ? 0 : (await rowsIn(tx, answer, coveredBefore)) - before;
    const gained = candles.openTime.reduce((n, at) => n + (contains(granted, at) ? 1 : 0), 0) + difference;
    const revisions = [...changed, ...removed];
    const counts = { stored, revised: revisions.length, quarantined: answer.quarantined.length };
    const fetchId = recordFetch(tx, {
      ...answer.fetch,
      ...counts,
      answeredSlots: verdict.answeredSlots,
      unconfirmedSlots: verdict.unconfirmedSlots,
    });
    await Promise.all([
      written,
      fetchId,
      // Whatever was stored: the row's version tells those who have read the candles before.
      tx`update market.series
        set covered = covered + ${granted}::tstzmultirange, covered_candles = covered_candles + ${gained},
          answered_at = greatest(answered_at, ${asOf})
        where id = ${series.id}`,
      replaceOpenCandles(tx, series.id, answer.open, { within: union(writable, empty), isAny: state.hasOpen }),
      state.hasRollups ? cutRollups(tx, series.id, revisions.length > 0 ? [span] : granted) : null,
      replacePending(tx, series.id, pendingBefore, pendingAfter(answer, state, verdict, granted)),
      // Only at the newest end: what is asked of the past says nothing about how fresh a series is.
      span.to > settledUntil(asOf, series.interval) ? markSeen(tx, series.id, Math.min(asOf, span.to)) : null,
    ]);
    if (revisions.length > 0) {
      await tx`update market.revision set fetch_id = ${await fetchId} where id = any(${revisions}::bigint[])`;
    }
    await quarantine(tx, series.id, answer.quarantined, { fetchId: await fetchId, seenAt: asOf });
    return { ...counts, covered: granted };
  }) as Promise<ChunkCommit>;
}

/** Of what stays open, this answer speaks where no younger one was asked, and where the younger ones had nothing to say. */
function pendingAfter(
  { span, fetch: { sentAt } }: ChunkAnswer,
  state: State,
  verdict: Verdict,
  granted: Spans,
): Pending[] {
  const open = subtract(subtract([span], state.covered), granted);
  const ours = subtract([span], state.askedByYounger);
  const kept = state.pending.flatMap((p) => clipPending([p], subtract([p.span], union(ours, granted))));
  const said = normalize(kept.map((p) => p.span));
  // What a younger answer said stands, but it was asked about once more.
  const asked = kept.flatMap((p) => [
    ...clipPending([p], subtract([p.span], [span])),
    ...clipPending([p.retryAt <= sentAt ? { ...p, requestedAt: sentAt } : p], [span]),
  ]);
  return [...asked, ...clipPending(verdict.pending, subtract(open, said))];
}

/** What was there, read under the series' lock. */
type State = Omit<Known, 'repeated'> & {
  readonly covered: Spans;
  /** Where an answer younger than this one was asked at all. */
  readonly askedByYounger: Spans;
  readonly hasRows: boolean;
  readonly hasOpen: boolean;
  readonly hasRollups: boolean;
};

async function rowsIn(tx: SqlOrTransaction, { series, span }: ChunkAnswer, spans: Spans): Promise<number> {
  const [row] = await tx<{ n: number }[]>`select count(*)::int as n from market.candle
    where series_id = ${series.id} and interval = ${series.interval}::market.candle_interval
      and open_time >= ${span.from} and open_time < ${span.to}
      and ${spans}::tstzmultirange @> open_time`;
  return row!.n;
}

/** As JSON has it: seconds since 1970; null instead of infinity. */
type PendingRead = Pick<Pending, 'claim' | 'answers'> & {
  readonly span: string;
  readonly requestedAt: number;
  readonly retryAt: number | null;
};

/**
 * Two statements, because the second must see what was committed while the first waited: a subquery beside `for update` would
 * still answer from the snapshot taken before the wait.
 */
async function lockSeries(tx: SqlOrTransaction, { series, span, asOf, fetch }: ChunkAnswer): Promise<State> {
  const [, [row]] = await Promise.all([
    tx`select from market.series where id = ${series.id} for update`,
    tx<
      {
        covered: Spans;
        answeredSlots: Spans;
        asked: Spans;
        listedAt: Instant;
        hasRows: boolean;
        hasOpen: boolean;
        hasRollups: boolean;
        unconfirmedAnswers: { spans: string; asOf: number }[];
        pending: PendingRead[];
      }[]
    >`
      select s.covered * ${[span]}::tstzmultirange as covered,
        coalesce(younger.answered_slots, '{}') as answered_slots, coalesce(younger.asked, '{}') as asked,
        (select c.last_seen_at from market.coin c where c.id = s.coin_id) as listed_at,
        exists (select from market.candle c
          where c.series_id = ${series.id} and c.interval = ${series.interval}::market.candle_interval
            and c.open_time >= ${span.from} and c.open_time < ${span.to}) as has_rows,
        exists (select from market.open_candle o where o.series_id = ${series.id}) as has_open,
        exists (select from market.rollup_coverage r where r.series_id = ${series.id} and r.spans && ${span}::tstzrange) as has_rollups,
        coalesce((select json_agg(json_build_object('spans', tstzmultirange(d.span)::text, 'asOf', extract(epoch from f.as_of)))
          from ops.fetch f cross join unnest(f.unconfirmed_slots) as d (span)
          where f.series_id = ${series.id} and f.unconfirmed_slots && ${span}::tstzrange and d.span && ${span}::tstzrange
            and not exists (select from ops.fetch g where g.series_id = f.series_id and g.outcome = 'stored' and g.as_of > f.as_of
              and coalesce(g.answered_slots, tstzmultirange(g.span)) && d.span)), '[]') as unconfirmed_answers,
        coalesce((select json_agg(json_build_object('span', p.span::text, 'claim', p.claim, 'answers', p.answers,
            'requestedAt', extract(epoch from p.requested_at), 'retryAt', extract(epoch from nullif(p.retry_at, 'infinity'))))
          from ops.second_opinion p where p.series_id = ${series.id} and p.span && ${span}::tstzrange), '[]') as pending
      from market.series s
      cross join lateral (
        -- A total order: of two answers of one instant the one that was asked for later is the younger; then any, but always the same.
        select range_agg(coalesce(f.answered_slots, tstzmultirange(f.span))) as answered_slots, range_agg(f.span) as asked
        from ops.fetch f
        where f.series_id = ${series.id} and f.outcome = 'stored' and f.span && ${span}::tstzrange
          and f.as_of >= ${asOf} and (f.as_of, f.sent_at, coalesce(f.body_sha256, ''))
            > (${asOf}::timestamptz, ${fetch.sentAt}::timestamptz, ${Buffer.from(fetch.bodySha256 ?? [])}::bytea)
      ) younger
      where s.id = ${series.id}`,
  ]);
  if (!row) throw new Error(`series ${series.id} does not exist`);
  const { answeredSlots, asked, ...known } = row;
  return {
    ...known,
    answeredByYounger: intersect(answeredSlots, [span]),
    askedByYounger: intersect(asked, [span]),
    unconfirmedAnswers: row.unconfirmedAnswers.map((other) => ({
      asOf: Math.round(other.asOf * 1000),
      spans: intersect(parseMultirange(other.spans), [span]),
    })),
    pending: row.pending.map((p) => ({
      span: parseRange(p.span),
      claim: p.claim,
      answers: p.answers,
      requestedAt: Math.round(p.requestedAt * 1000),
      retryAt: p.retryAt === null ? Number.POSITIVE_INFINITY : Math.round(p.retryAt * 1000),
    })),
  };
}

function pick(c: CandleColumns, within: Spans): CandleColumns {
  const keep = c.openTime.map((at) => contains(within, at));
  if (keep.every(Boolean)) return c;
  const only = <T>(values: readonly T[]) => values.filter((_, i) => keep[i]);
  return Object.fromEntries(
    Object.entries(c).map(([name, values]) => [name, only<number | null>(values)]),
  ) as CandleColumns;
}

function slotsOf(c: CandleColumns, interval: Interval): Spans {
  return normalize(c.openTime.map((at) => ({ from: at, to: at + INTERVAL_MS[interval] })));
}
