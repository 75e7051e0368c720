/** Records what the candles of an answer change for their series: coverage, counts, digest and one evidence step (`market.evidence`). */
import type { Instant } from '../../clock.ts';
import type { CandleSums } from '../../core/candle-hash.ts';
import { INTERVAL_MS, type Interval } from '../../core/interval.ts';
import { RULES } from '../../core/second-opinion.ts';
import { intersect, type Spans, slotsAt, subtract, union } from '../../core/span.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { forgottenUntil, type Revised, removeForgotten } from './candle.ts';
import type { ChunkAnswer, State } from './lock-series.ts';

/** When the answer arrived, on our own clock. */
export function receivedAt({ fetch }: ChunkAnswer): Instant {
  return fetch.sentAt + Math.round(fetch.durationMs);
}

/** Counts and digest of the stored candles in the requested span. */
type Sums = { readonly candles: number; readonly digest: string; readonly finalCandles: number };
export const NO_SUMS: Sums = { candles: 0, digest: '0', finalCandles: 0 };

/** Reads the sums. Call it before the answer is written. It also removes candles in the span that retention no longer counts. */
export async function sumsBefore(tx: SqlOrTransaction, answer: ChunkAnswer): Promise<Sums> {
  const { series, span } = answer;
  const read = () => tx<(Sums & { forgottenUntil: Instant | null })[]>`
    select t.candles, t.digest::text, t.final_candles, ${forgottenUntil(tx)} as forgotten_until from market.series s
    cross join lateral ops.sums(s.id, ${series.interval}::market.candle_interval, ${span}::tstzrange, s.covered, '{}') t
    where s.id = ${series.id}`;
  const [row] = await read();
  if (row!.forgottenUntil === null || row!.forgottenUntil <= span.from) return row!;
  await removeForgotten(tx, series, span);
  const [left] = await read();
  return left!;
}

type EvidenceOfAnswer = {
  readonly granted: Spans;
  /** Slots whose final value the answer has set: those granted, and those that were final before and have changed. */
  readonly told: Spans;
  /** Slots of the requested span that are empty according to one answer only. */
  readonly emptyOnce: Spans;
  readonly before: Sums;
  /** Sums of the span after the write, if they are known in advance. Null makes Postgres read them. */
  readonly after: CandleSums | null;
  readonly wasImplausible: boolean;
  /** When the answer is stored, on our own clock. */
  readonly knownAt: Instant;
};

/** The detail of an evidence step whose answer was implausible until a second answer agreed with it. */
export const IMPLAUSIBLE_BUT_CONFIRMED = 'told twice';

/** Writes coverage, counts, digest and evidence. The update raises `market.series.version`, so readers see that older candles are out of date. */
export async function recordEvidence(tx: SqlOrTransaction, answer: ChunkAnswer, of: EvidenceOfAnswer): Promise<void> {
  const { series, span, asOf, fetch } = answer;
  const body = fetch.bodySha256 === null ? null : Buffer.from(fetch.bodySha256);
  const { after } = of;
  // The record of the request was inserted just before, in this transaction.
  await tx`
    select ops.record_answer(${series.id}, ${series.interval}::market.candle_interval, ${span}::tstzrange,
      ${of.granted}::tstzmultirange, ${of.told}::tstzmultirange, ${of.emptyOnce}::tstzmultirange,
      ${of.knownAt}::timestamptz, ${asOf}::timestamptz, currval('ops.fetch_id_seq'), ${body}::bytea,
      ${of.before.candles}, ${of.before.digest}::text::bigint, ${of.before.finalCandles},
      ${of.wasImplausible ? IMPLAUSIBLE_BUT_CONFIRMED : null}::text, ${after?.candles ?? null}::integer, ${after?.digest.toString() ?? null}::text::bigint,
      ${after?.toldCandles ?? null}::integer, ${after?.toldCandles ?? null}::integer, ${after?.toldDigest.toString() ?? null}::text::bigint,
      ${after?.toldLocator.toString() ?? null}::text::bigint)`;
}

/** Two answers that are this far apart are independent: no cache can have repeated the first one. */
const INDEPENDENT_MS = RULES.unconfirmed.waitMs;

/** The slots of the requested span that are empty according to one answer only (this one or an earlier one) once this answer is stored. */
export async function readEmptyOnce(
  tx: SqlOrTransaction,
  { span, candles, asOf, series }: ChunkAnswer,
  { covered, emptyOnce }: State,
  { final, granted, removed }: { readonly final: Spans; readonly granted: Spans; readonly removed: readonly Revised[] },
): Promise<Spans> {
  const present = slotsOf(candles.openTime, series.interval);
  const holes = subtract(final, present);
  const toldOnce = intersect(emptyOnce, [span]);
  const told = toldOnce.length === 0 ? [] : await toldWithinAnHour(tx, series.id, toldOnce, asOf);
  const before = subtract(toldOnce, union(subtract(final, told), intersect(final, present)));
  const gone = slotsOf(
    removed.map(({ openTime }) => openTime),
    series.interval,
  );
  return union(before, union(intersect(granted, holes), intersect(gone, covered)));
}

/** The slots of evidence from within an hour of `asOf`: an answer as of that instant is not independent of such evidence. */
async function toldWithinAnHour(tx: SqlOrTransaction, seriesId: number, slots: Spans, asOf: Instant): Promise<Spans> {
  const [row] = await tx<{ told: Spans }[]>`
    select coalesce(range_agg(slots), '{}') as told from market.evidence
    where series_id = ${seriesId} and slots && ${slots}::tstzmultirange
      and as_of > ${asOf - INDEPENDENT_MS} and as_of < ${asOf + INDEPENDENT_MS}`;
  return row!.told;
}

/** The slots that open at these instants. `times` must ascend. */
export function slotsOf(times: readonly Instant[], interval: Interval): Spans {
  return slotsAt(times, INTERVAL_MS[interval]);
}
