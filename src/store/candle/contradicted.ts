/**
 * Reopens slots that were covered as empty by mistake. Two answers an hour apart agreed that slots at their edges have no candle, so the slots
 * were covered. Then a younger answer says something about a slot in one of these edges. This shows that the older answer was cut: it proves
 * nothing any more. Slots on which no other two answers agree are a gap again, as if the younger answer had been stored first.
 */
import type { Instant } from '../../clock.ts';
import { INTERVAL_MS } from '../../core/interval.ts';
import { RULES } from '../../core/second-opinion.ts';
import { intersect, normalize, type Spans, subtract, union } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { IMPLAUSIBLE_BUT_CONFIRMED, slotsOf } from './chunk-evidence.ts';
import {
  type ChunkAnswer,
  type EdgeRead,
  edgesWithin,
  listedAt as listedAtOf,
  readEdges,
  type UnconfirmedAnswer,
} from './lock-series.ts';
import { storedRows } from './stored.ts';

/** What this answer says about the edges. */
type Contradiction = {
  /** Whole edges of older answers in which this one says something about a slot. */
  readonly contradicted: Spans;
  readonly answeredSlots: Spans;
  /** Edges of this answer that no younger one contradicts. */
  readonly uncontradicted: Spans;
};

/** The covered slots in `contradicted` without a candle that nothing proves empty any more. Requires the lock of the series. */
export async function readUnproven(tx: SqlOrTransaction, answer: ChunkAnswer, of: Contradiction): Promise<Spans> {
  const { series, asOf } = answer;
  const { contradicted } = of;
  const bounds = { from: contradicted[0]!.from, to: contradicted.at(-1)!.to };
  const [row] = await tx<{ empty: Spans; told: Spans; listedAt: Instant; edges: EdgeRead[]; candles: Instant[] }[]>`
    select s.covered * ${contradicted}::tstzmultirange as empty,
      coalesce((select range_agg(f.answered_slots) from ops.fetch f
        where f.series_id = s.id and f.outcome = 'stored' and f.answered_slots && ${contradicted}::tstzmultirange), '{}') as told,
      ${listedAtOf(tx)} as listed_at,
      ${edgesWithin(tx, answer, contradicted)} as edges,
      array(select c.open_time from ${storedRows(tx, tx`s.id`, series.interval)} c
        where c.open_time >= ${bounds.from} and c.open_time < ${bounds.to} order by c.open_time) as candles
    from market.series s where s.id = ${series.id}`;
  const { empty, told, listedAt, edges, candles } = row!;
  const standing = readEdges(edges).filter(
    ({ isOlder, spans }) => !(isOlder && intersect(spans, of.answeredSlots).length > 0),
  );
  const agreed = agreedEmpty([...standing, { asOf, spans: of.uncontradicted }], listedAt);
  const proven = union(union(told, of.answeredSlots), union(slotsOf(candles, series.interval), agreed));
  return subtract(empty, proven);
}

/** The slots of which two of these answers, far enough apart in time, agree that they have no candle. */
function agreedEmpty(answers: readonly Omit<UnconfirmedAnswer, 'isOlder'>[], listedAt: Instant): Spans {
  const agreed: Spans[] = [];
  for (const [i, one] of answers.entries()) {
    for (const other of answers.slice(i + 1)) {
      const isIndependent = Math.abs(one.asOf - other.asOf) >= RULES.unconfirmed.waitMs;
      if (isIndependent && listedAt >= Math.min(one.asOf, other.asOf)) agreed.push(intersect(one.spans, other.spans));
    }
  }
  return normalize(agreed.flat());
}

/** Takes `slots` out of coverage. Writes one evidence step, and one revision per slot whose old value is "known to be empty" (`was_empty`). */
export async function takeBack(
  tx: SqlOrTransaction,
  answer: ChunkAnswer,
  slots: Spans,
  { fetchId, knownAt }: { readonly fetchId: number; readonly knownAt: Instant },
): Promise<void> {
  const { series, asOf, fetch } = answer;
  const body = fetch.bodySha256 === null ? null : Buffer.from(fetch.bodySha256);
  const widthSeconds = INTERVAL_MS[series.interval] / 1_000;
  await tx`
    insert into market.revision (series_id, open_time, seen_at, known_at, step, reason, fetch_id, was_empty)
    select s.id, t, ${asOf}::timestamptz, ${knownAt}::timestamptz, s.steps + 1, 'contradicted', ${fetchId}, true
    from market.series s, unnest(${slots}::tstzmultirange) r,
      generate_series(lower(r), upper(r) - ${widthSeconds} * interval '1 second', ${widthSeconds} * interval '1 second') t
    where s.id = ${series.id} order by t`;
  await tx`
    with step as materialized (
      select ops.add_evidence(${series.id}, 'mended', ${slots}::tstzmultirange, ${knownAt}::timestamptz, ${asOf}::timestamptz, 0, 0, 0,
        ${fetchId}, ${body}::bytea, 'contradicted by a later answer') as link
    )
    update market.series s set covered = s.covered - ${slots}::tstzmultirange, empty_once = s.empty_once - ${slots}::tstzmultirange,
      steps = s.steps + 1, link = step.link
    from step where s.id = ${series.id}`;
}

/**
 * Takes the slot at `at` out of coverage, so that it is requested again, together with the unbroken stretch around it from the same answer. Does
 * nothing if a second answer confirmed that one. Revisions keep the old values. Call it under the lock of the series, after all other writes.
 */
export async function reopenEmptyOnce(tx: SqlOrTransaction, seriesId: number, at: Instant): Promise<void> {
  await tx`
    select ops.uncover(${seriesId}, lower(e.stretch), upper(e.stretch))
    from (
      select e.detail, stretch
      from market.series s join market.evidence_steps e on e.series_id = s.id cross join unnest(e.slots) stretch
      where s.id = ${seriesId} and e.kind = 'answer' and stretch @> ${at}::timestamptz
        -- The previous candle may already have reopened the same stretch.
        and s.covered @> ${at}::timestamptz
      order by e.number desc limit 1
    ) e
    where e.detail is distinct from ${IMPLAUSIBLE_BUT_CONFIRMED}`;
}
