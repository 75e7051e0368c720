/** What is known of the span that an answer is about, read under the lock of its series. */
import type { Instant } from '../../clock.ts';
import type { CandleColumns, Quote } from '../../core/candle.ts';
import type { Interval } from '../../core/interval.ts';
import { RULES } from '../../core/second-opinion.ts';
import { intersect, type Span, type Spans } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { parseMultirange, parseRange } from '../values/multirange.ts';
import type { FetchRow } from '../work/fetch.ts';
import type { Pending } from '../work/second-opinion.ts';
import type { OpenCandle } from './candle.ts';
import { type Neighbours, type NeighboursRead, neighboursOf, toNeighbours } from './neighbours.ts';
import { type OtherSeriesRead, otherSeriesOf, readSamples, type Sample } from './other-intervals.ts';
import type { QuarantinedRow } from './quarantine.ts';

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
export type UnconfirmedAnswer = {
  readonly asOf: Instant;
  /** One edge, whole: it may reach beyond what is asked now. */
  readonly spans: Spans;
  /** Than the answer that is stored now. */
  readonly isOlder: boolean;
};

/** What is known of the asked span from other answers, whichever of them were given first. */
export type Known = {
  readonly pending: readonly Pending[];
  /** Those that no younger answer has contradicted: it has said nothing about any slot of such a span. */
  readonly unconfirmedAnswers: readonly UnconfirmedAnswer[];
  /** Where a younger answer has said something. */
  readonly answeredByYounger: Spans;
  /** As-of instant of the youngest list of coins or tickers that has this one. */
  readonly listedAt: Instant;
  /** Slots whose rows were quarantined by the answer before exactly as they are now. */
  readonly repeated: ReadonlySet<Instant>;
  /** Final slots of the span. */
  readonly covered: Spans;
  readonly beside: Neighbours;
  readonly samples: readonly Sample[];
};

/** What was there, read under the series' lock. */
export type State = Omit<Known, 'repeated'> & {
  /** Steps of its evidence so far. */
  readonly steps: number;
  /** Of the whole series: covered, without a candle, by the word of one answer. */
  readonly emptyOnce: Spans;
  /** Where an answer younger than this one was asked at all. */
  readonly askedByYounger: Spans;
  readonly hasRows: boolean;
  readonly hasOpen: boolean;
  /** Coarser candles were made of those of the span, or of finer ones there. */
  readonly hasRollups: boolean;
};

/**
 * An expression for the as-of instant of the youngest list that has the coin of the series `s`: of coins, or of tickers, which come more often.
 * Either proves that the upstream knows the id.
 */
export function listedAt(sql: SqlOrTransaction) {
  return sql`(select greatest(c.last_seen_at, (select t.seen_at from market.ticker t where t.coin_id = c.id))
    from market.coin c where c.id = s.coin_id)`;
}

/** As JSON has it: seconds since 1970. */
export type EdgeRead = { readonly spans: string; readonly asOf: number; readonly isOlder: boolean };

/**
 * An expression for the edges without a candle of earlier answers in `within`, but for those that a younger answer contradicts: it tells of a slot
 * in it. Read it with `readEdges`.
 */
export function edgesWithin(tx: SqlOrTransaction, { series, asOf, fetch }: ChunkAnswer, within: Spans) {
  return tx`
    coalesce((select json_agg(json_build_object('spans', tstzmultirange(d.span)::text, 'asOf', extract(epoch from f.as_of),
        'isOlder', (f.as_of, f.sent_at, coalesce(f.body_sha256, ''))
          < (${asOf}::timestamptz, ${fetch.sentAt}::timestamptz, ${Buffer.from(fetch.bodySha256 ?? [])}::bytea)))
      from ops.fetch f cross join unnest(f.unconfirmed_slots) as d (span)
      where f.series_id = ${series.id} and f.unconfirmed_slots && ${within}::tstzmultirange and ${within}::tstzmultirange && d.span
        and not exists (select from ops.fetch g where g.series_id = f.series_id and g.outcome = 'stored'
          and g.as_of >= f.as_of and (g.as_of, g.sent_at, coalesce(g.body_sha256, '')) > (f.as_of, f.sent_at, coalesce(f.body_sha256, ''))
          and coalesce(g.answered_slots, tstzmultirange(g.span)) && d.span)), '[]')`;
}

export function readEdges(edges: readonly EdgeRead[]): UnconfirmedAnswer[] {
  return edges.map(({ spans, asOf, isOlder }) => ({
    asOf: Math.round(asOf * 1000),
    spans: parseMultirange(spans),
    isOlder,
  }));
}

/** As JSON has it: seconds since 1970; null instead of infinity. */
type PendingRead = Pick<Pending, 'claim' | 'answers' | 'evidence'> & {
  readonly span: string;
  readonly requestedAt: number;
  readonly retryAt: number | null;
};

/**
 * Two statements, because the second must see what was committed while the first waited: a subquery beside `for update` would
 * still answer from the snapshot taken before the wait.
 */
export async function lockSeries(tx: SqlOrTransaction, answer: ChunkAnswer): Promise<State> {
  const { series, span, asOf, fetch } = answer;
  const { agreeing, forgetMs } = RULES['intervals differ'];
  const [, [row]] = await Promise.all([
    tx`select from market.series where id = ${series.id} for update`,
    tx<
      {
        covered: Spans;
        answeredSlots: Spans;
        asked: Spans;
        listedAt: Instant;
        hasOpen: boolean;
        hasRollups: boolean;
        steps: number;
        emptyOnce: Spans;
        edges: EdgeRead[];
        pending: PendingRead[];
        beside: NeighboursRead;
        others: OtherSeriesRead[] | null;
      }[]
    >`
      select s.covered * ${[span]}::tstzmultirange as covered, s.steps, s.empty_once,
        ${neighboursOf(tx, series, span)} as beside, ${otherSeriesOf(tx, span, { answers: agreeing, since: fetch.sentAt - forgetMs })} as others,
        coalesce(younger.answered_slots, '{}') as answered_slots, coalesce(younger.asked, '{}') as asked,
        ${listedAt(tx)} as listed_at,
        exists (select from market.open_candle o where o.series_id = ${series.id}) as has_open,
        exists (select from market.series f join market.rollup_coverage r on r.series_id = f.id
            where f.coin_id = s.coin_id and f.quote = s.quote and f.interval <= s.interval and r.spans && ${span}::tstzrange)
          or exists (select from market.calendar_coverage c
            where c.coin_id = s.coin_id and c.quote = s.quote and c.spans && ${span}::tstzrange) as has_rollups,
        ${edgesWithin(tx, answer, [span])} as edges,
        coalesce((select json_agg(json_build_object('span', p.span::text, 'claim', p.claim, 'answers', p.answers, 'evidence', p.evidence,
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
  const { answeredSlots, asked, edges, others, ...known } = row;
  const beside = toNeighbours(row.beside, series.interval);
  return {
    ...known,
    beside,
    samples: others === null ? [] : await readSamples(tx, series.interval, answer.candles, others),
    hasRows: beside.candles.some(([at]) => at >= span.from && at < span.to),
    answeredByYounger: intersect(answeredSlots, [span]),
    askedByYounger: intersect(asked, [span]),
    unconfirmedAnswers: readEdges(edges),
    pending: row.pending.map((p) => ({
      span: parseRange(p.span),
      claim: p.claim,
      answers: p.answers,
      evidence: p.evidence,
      requestedAt: Math.round(p.requestedAt * 1000),
      retryAt: p.retryAt === null ? Number.POSITIVE_INFINITY : Math.round(p.retryAt * 1000),
    })),
  };
}

/** Locks all series of candles of a coin, in one order: no answer about any of them is stored meanwhile. */
export async function lockCoin(tx: SqlOrTransaction, coinId: string, quote: Quote): Promise<void> {
  await tx`
    select from market.series where coin_id = ${coinId} and quote = ${quote} and interval <= '24h' order by id for no key update`;
}
