/** Reads what is known about the span of an answer, under the lock of its series. */
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
import { candlesAround, type FinalRead, finalOf, type Neighbours, toNeighbours } from './neighbours.ts';
import { type OtherSeriesRead, otherSeriesOf, readSamples, type Sample } from './other-intervals.ts';
import type { QuarantinedRow } from './quarantine.ts';

export type ChunkAnswer = {
  readonly series: { readonly id: number; readonly interval: Interval };
  /** The requested span. */
  readonly span: Span;
  readonly asOf: Instant;
  readonly candles: CandleColumns;
  /** Those of the candles that had not closed yet, and until when their data reach. */
  readonly open: readonly OpenCandle[];
  readonly quarantined: readonly QuarantinedRow[];
  readonly fetch: Omit<FetchRow, 'stored' | 'revised' | 'quarantined' | 'answeredSlots' | 'unconfirmedSlots'>;
};

/** Slots at an edge that an answer did not contain. One such answer alone proves nothing. */
export type UnconfirmedAnswer = {
  readonly asOf: Instant;
  /** One whole edge. It may reach beyond the span that is requested now. */
  readonly spans: Spans;
  /** True if it is older than the answer that is being stored. */
  readonly isOlder: boolean;
};

/** What other answers, older or younger, say about the requested span. */
export type OtherAnswers = {
  readonly pending: readonly Pending[];
  /** Edges that no younger answer contradicts: none has said anything about a slot in them. */
  readonly unconfirmedAnswers: readonly UnconfirmedAnswer[];
  /** Slots about which a younger answer has said something. */
  readonly answeredByYounger: Spans;
  /** As-of instant of the youngest list of coins or tickers that contains this coin. */
  readonly listedAt: Instant;
  /** Open times at which the invalid rows are exactly those of the last answer with invalid rows there. */
  readonly repeated: ReadonlySet<Instant>;
  /** Final slots of the span. */
  readonly covered: Spans;
  readonly beside: Neighbours;
  readonly samples: readonly Sample[];
};

/** What was stored before this answer, read under the lock of the series. */
export type State = Omit<OtherAnswers, 'repeated'> & {
  /** Number of evidence steps of the series so far. */
  readonly steps: number;
  /** Covered slots of the whole series that are empty according to one answer only. */
  readonly emptyOnce: Spans;
  /** Requested spans of all younger answers, whatever these say. */
  readonly requestedByYounger: Spans;
  readonly hasRows: boolean;
  readonly hasOpen: boolean;
  /** True if rollups, weeks or months were made in the span, from this series or from finer ones. */
  readonly hasRollups: boolean;
};

/**
 * A SQL expression: the as-of instant of the youngest list that contains the coin of the series `s`. The list is one of coins, or one of tickers,
 * which arrive more often. Either proves that upstream knows the id.
 */
export function listedAt(sql: SqlOrTransaction) {
  return sql`(select greatest(c.last_seen_at, (select t.seen_at from market.ticker t where t.coin_id = c.id))
    from market.coin c where c.id = s.coin_id)`;
}

/** An edge as read from JSON: `asOf` is in seconds since 1970. */
export type EdgeRead = { readonly spans: string; readonly asOf: number; readonly isOlder: boolean };

/**
 * A SQL expression: the edges without a candle that other answers have in `within`, except edges that a younger answer contradicts because it says
 * something about a slot in them. Read the result with `readEdges`.
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

/** A claim as read from JSON: instants are in seconds since 1970, and null stands for infinity. */
type PendingRead = Pick<Pending, 'claim' | 'answers' | 'evidence'> & {
  readonly span: string;
  readonly requestedAt: number;
  readonly retryAt: number | null;
};

/**
 * Locks the series and reads its state. The lock is a statement of its own and the first, because the others must see what was committed while it
 * waited: a subquery beside `for update` would still read from the snapshot taken before the wait. They are sent together, in the order in which
 * `Promise.all` awaits them. None may come from an async function, which would send its statement while this list is still made.
 */
export async function lockSeries(tx: SqlOrTransaction, answer: ChunkAnswer): Promise<State> {
  const { series, span, asOf, fetch } = answer;
  const { agreeing, forgetMs } = RULES['intervals differ'];
  const [, [row], [around]] = await Promise.all([
    tx`select from market.series where id = ${series.id} for update`,
    tx<
      (FinalRead & {
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
        others: OtherSeriesRead[] | null;
      })[]
    >`
      select s.covered * ${[span]}::tstzmultirange as covered, s.steps, s.empty_once,
        ${finalOf(tx, series, span)}, ${otherSeriesOf(tx, span, { answers: agreeing, since: fetch.sentAt - forgetMs })} as others,
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
        -- A total order: of two answers of one instant, the one that was requested later is the younger. The digest decides between equals.
        select range_agg(coalesce(f.answered_slots, tstzmultirange(f.span))) as answered_slots, range_agg(f.span) as asked
        from ops.fetch f
        where f.series_id = ${series.id} and f.outcome = 'stored' and f.span && ${span}::tstzrange
          and f.as_of >= ${asOf} and (f.as_of, f.sent_at, coalesce(f.body_sha256, ''))
            > (${asOf}::timestamptz, ${fetch.sentAt}::timestamptz, ${Buffer.from(fetch.bodySha256 ?? [])}::bytea)
      ) younger
      where s.id = ${series.id}`,
    candlesAround(tx, series, span),
  ]);
  if (!row) throw new Error(`series ${series.id} does not exist`);
  const { answeredSlots, asked, edges, others, final, coveredSeconds, coveredCandles, ...known } = row;
  const beside = toNeighbours({ final, coveredSeconds, coveredCandles, ...around! }, series.interval);
  return {
    ...known,
    beside,
    samples: others === null ? [] : await readSamples(tx, series.interval, answer.candles, others),
    hasRows: beside.candles.some(([at]) => at >= span.from && at < span.to),
    answeredByYounger: intersect(answeredSlots, [span]),
    requestedByYounger: intersect(asked, [span]),
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

/** Locks all candle series of a coin in the order of their ids. Until the transaction ends, no answer about them is stored. */
export async function lockCoin(tx: SqlOrTransaction, coinId: string, quote: Quote): Promise<void> {
  await tx`
    select from market.series where coin_id = ${coinId} and quote = ${quote} and interval <= '24h' order by id for no key update`;
}
