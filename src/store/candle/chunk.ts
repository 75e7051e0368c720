/** The transaction that stores one answer: candles, coverage, pending second opinions and the record of the request commit together or not at all. */
import type { Instant } from '../../clock.ts';
import type { CandleColumns } from '../../core/candle.ts';
import { sumsOfCandles } from '../../core/candle-hash.ts';
import { yieldToEventLoop } from '../../core/concurrency/yield-to-event-loop.ts';
import { type Interval, settledUntil } from '../../core/interval.ts';
import { RULES } from '../../core/second-opinion.ts';
import { contains, intersect, normalize, type Spans, subtract, union } from '../../core/span.ts';
import type { Sql, SqlOrTransaction } from '../connection/connect.ts';
import { recordFetch } from '../work/fetch.ts';
import { clipPending, type Pending, replacePending } from '../work/second-opinion.ts';
import { removeCandles, replaceOpenCandles, saveRevisions, writeAsText, writeCandles } from './candle.ts';
import { NO_SUMS, readEmptyOnce, receivedAt, recordEvidence, slotsOf, sumsBefore } from './chunk-evidence.ts';
import { readUnproven, reopenEmptyOnce, takeBack } from './contradicted.ts';
import { type ChunkAnswer, lockSeries, type OtherAnswers, type State } from './lock-series.ts';
import { quarantine, repeatedRows } from './quarantine.ts';
import { cutRollups } from './rollup.ts';
import { markSeen } from './series.ts';

/** What an answer proves. */
export type Verdict = {
  /** Slots about which the answer alone says something: those with a candle (provisional ones too), and those with candles on both sides. */
  readonly answeredSlots: Spans;
  /** The part of `answeredSlots` that has settled: each slot in it has its candle in the answer, or is empty. */
  readonly proven: Spans;
  /** Slots that are missing at an edge of the answer. Another answer without them, long enough before or after, proves them empty. */
  readonly unconfirmedSlots: Spans;
  /** The part of `unconfirmedSlots` for which such another answer exists. */
  readonly confirmed: Spans;
  /** The part of `unconfirmedSlots` that no younger answer contradicts. */
  readonly uncontradicted: Spans;
  /** Edges of older answers that this one contradicts: it says something about a slot in them. Whole edges, which may reach beyond the span. */
  readonly contradicted: Spans;
  /** Replaces everything that is pending inside the requested span. */
  readonly pending: readonly Pending[];
  /** True if the answer was implausible and an earlier one agreed with it. */
  readonly wasImplausible?: boolean;
  /** Final candles that this answer contradicts. Set only if `wasImplausible`. */
  readonly contradictedCandles?: readonly Instant[];
  /** Set if nothing of the answer may be stored until a second one agrees with it. From `until` on, a request for that one is worth it. */
  readonly withheld?: { readonly until: Instant; readonly detail: string };
};

export type ChunkCommit = {
  readonly stored: number;
  readonly revised: number;
  readonly quarantined: number;
  readonly covered: Spans;
  readonly withheld?: Verdict['withheld'];
};

/**
 * Stores one answer in one transaction. Under the lock it calls `judge`, which decides what the answer proves, given what is known.
 *
 * For each slot, the youngest answer that says something about it wins, in whatever order the answers are stored. Its candle replaces
 * the stored one, and its proof of absence removes the stored one. Both keep old final values as a revision. Where a younger answer
 * has said something, this one changes nothing. Unconfirmed slots count only where there is no final answer.
 * `now` is our clock: it gives the instant since when the answer is known.
 */
export function storeChunk(
  sql: Sql,
  answer: ChunkAnswer,
  judge: (known: OtherAnswers) => Verdict,
  now: () => Instant = () => receivedAt(answer),
): Promise<ChunkCommit> {
  return sql.begin(async (tx) => {
    const { series, span, candles, asOf } = answer;
    const [state, texts] = await Promise.all([lockSeries(tx, answer), meanwhile(() => writeAsText(candles))]);
    const textsOf = (part: CandleColumns) => (part === candles ? texts : writeAsText(part));
    const { covered, pending: pendingBefore, answeredByYounger } = state;
    const malformed = pendingBefore.some((p) => p.claim === 'malformed');
    const repeated = malformed ? await repeatedRows(tx, series.id, answer.quarantined) : new Set<Instant>();
    const verdict = judge({ ...state, repeated });
    if (verdict.withheld) return withhold(tx, answer, state, verdict);

    const ours = subtract([span], answeredByYounger);
    const final = intersect(verdict.proven, ours);
    const granted = subtract(union(final, verdict.confirmed), covered);
    const coveredBefore = intersect(covered, final);

    const known = state.hasRows || covered.length > 0;
    const before = state.hasRows ? await sumsBefore(tx, answer) : NO_SUMS;
    // The answer may have waited for an unavailable database, and for the lock.
    const knownAt = Math.max(receivedAt(answer), now());
    const replacing = { asOf, knownAt, step: state.steps + 1 };
    const changed =
      coveredBefore.length === 0
        ? []
        : await saveRevisions(tx, series, textsOf(pick(candles, coveredBefore)), replacing);
    // A provisional candle never replaces a final answer, because the final answer is younger.
    const writable = union(final, subtract(ours, covered));
    const writing = pick(candles, writable);
    const written = writeCandles(tx, series, textsOf(writing), known ? 'overwrite' : 'fresh');
    // The `await` below throws a failure. Until then it must not count as an unhandled rejection.
    written.catch(() => undefined);
    const empty = subtract(
      union(final, intersect(granted, verdict.confirmed)),
      slotsOf(candles.openTime, series.interval),
    );
    const removed =
      state.hasRows && empty.length > 0
        ? await removeCandles(tx, series, { bounds: span, spans: empty, final: covered }, replacing)
        : [];
    // If nothing was stored before, the number of rows is known in advance, so the statements below need not wait for the insert.
    const stored = known ? await written : candles.openTime.length;

    const revisions = [...changed, ...removed];
    const emptyOnce = await readEmptyOnce(tx, answer, state, { final, granted, removed });
    const revisedSlots = revisions.map(({ openTime }) => openTime).sort((a, b) => a - b);
    const counts = { stored, revised: revisions.length, quarantined: answer.quarantined.length };
    const reopened = verdict.contradicted.length === 0 ? [] : await readUnproven(tx, answer, verdict);
    // This process hashes while Postgres inserts. Nothing was final before, so exactly the granted slots are final now.
    const after = known ? null : await meanwhile(() => sumsOfCandles(writing, series.interval, granted));
    const fetchId = recordFetch(tx, {
      ...answer.fetch,
      ...counts,
      answeredSlots: verdict.answeredSlots,
      unconfirmedSlots: verdict.unconfirmedSlots,
    });
    await Promise.all([
      written,
      fetchId,
      recordEvidence(tx, answer, {
        granted,
        told: union(granted, slotsOf(revisedSlots, series.interval)),
        emptyOnce,
        before,
        after,
        wasImplausible: verdict.wasImplausible ?? false,
        knownAt,
      }),
      replaceOpenCandles(tx, series.id, answer.open, { within: union(writable, empty), isAny: state.hasOpen }),
      // Where coverage changes, a trigger cuts the rollups.
      state.hasRollups
        ? cutRollups(
            tx,
            series.id,
            revisions.length > 0 ? [span] : provisionalSlots(writing, series.interval, union(covered, granted)),
          )
        : null,
      replacePending(tx, series.id, pendingBefore, pendingAfter(answer, state, verdict, { granted, reopened })),
      // Only at the newest end: a request about the past says nothing about how fresh a series is.
      span.to > settledUntil(asOf, series.interval) ? markSeen(tx, series.id, Math.min(asOf, span.to)) : null,
    ]);
    if (revisions.length > 0) {
      await tx`update market.revision set fetch_id = ${await fetchId} where id = any(${revisions.map(({ id }) => id)}::bigint[])`;
    }
    if (reopened.length > 0) await takeBack(tx, answer, reopened, { fetchId: await fetchId, knownAt });
    for (const at of verdict.contradictedCandles ?? []) await reopenEmptyOnce(tx, series.id, at);
    await quarantine(tx, series.id, answer.quarantined, { fetchId: await fetchId, seenAt: asOf });
    return { ...counts, covered: granted };
  }) as Promise<ChunkCommit>;
}

/**
 * Computes while Postgres works on the statements begun before. postgres.js sends short ones in a turn of the event loop that it asks for after
 * this function does, so the computation waits for the turn after that.
 */
async function meanwhile<T>(compute: () => T): Promise<T> {
  await yieldToEventLoop();
  await yieldToEventLoop();
  return compute();
}

/** Slots whose candle is not final. Such a candle takes precedence over a rollup of finer ones. */
function provisionalSlots({ openTime }: CandleColumns, interval: Interval, final: Spans): Spans {
  return subtract(slotsOf(openTime, interval), final);
}

/** Records only three things of an implausible answer: the request, the quarantined rows and the claim. */
async function withhold(
  tx: SqlOrTransaction,
  answer: ChunkAnswer,
  state: State,
  verdict: Verdict,
): Promise<ChunkCommit> {
  const { series, span, fetch, quarantined, asOf } = answer;
  const { withheld } = verdict;
  const counts = { stored: 0, revised: 0, quarantined: quarantined.length };
  const fetchId = await recordFetch(tx, { ...fetch, ...counts, outcome: 'implausible', message: withheld!.detail });
  const pending = [
    ...pendingAfter(answer, state, verdict, { granted: [], reopened: [] }),
    // An answer about holes would change final slots. The slots stay as they are, and the claim about them stays pending.
    ...clipPending(verdict.pending, intersect(state.covered, subtract([span], state.requestedByYounger))),
  ];
  await replacePending(tx, series.id, state.pending, pending);
  await quarantine(tx, series.id, quarantined, { fetchId, seenAt: asOf });
  return { ...counts, covered: [], withheld };
}

/** The claims that stay pending. This answer's claims replace older ones. Where a younger answer exists, they only fill slots without a claim. */
function pendingAfter(
  { span, fetch: { sentAt } }: ChunkAnswer,
  state: State,
  verdict: Verdict,
  { granted, reopened }: { readonly granted: Spans; readonly reopened: Spans },
): Pending[] {
  const open = subtract(subtract([span], subtract(state.covered, reopened)), granted);
  const ours = subtract([span], state.requestedByYounger);
  const kept = state.pending.flatMap((p) => clipPending([p], subtract([p.span], union(ours, granted))));
  const said = normalize(kept.map((p) => p.span));
  // The claim of a younger answer stays. If it was due, this request counts as its repetition.
  const asked = kept.flatMap((p) => [
    ...clipPending([p], subtract([p.span], [span])),
    ...clipPending([p.retryAt <= sentAt ? { ...p, requestedAt: sentAt } : p], [span]),
  ]);
  const pending = [...asked, ...clipPending(verdict.pending, subtract(open, said))];
  return [...pending, ...asUnconfirmed(subtract(reopened, normalize(pending.map((p) => p.span))), sentAt)];
}

/** Makes reopened slots unconfirmed: one answer without them still stands, and another one may confirm it from an hour later on. */
function asUnconfirmed(slots: Spans, sentAt: Instant): Pending[] {
  const retryAt = sentAt + RULES.unconfirmed.waitMs;
  return slots.map((span) => ({ span, claim: 'unconfirmed', answers: 1, requestedAt: sentAt, retryAt }));
}

function pick(c: CandleColumns, within: Spans): CandleColumns {
  const keep = c.openTime.map((at) => contains(within, at));
  if (keep.every(Boolean)) return c;
  const only = <T>(values: readonly T[]) => values.filter((_, i) => keep[i]);
  return Object.fromEntries(
    Object.entries(c).map(([name, values]) => [name, only<number | null>(values)]),
  ) as CandleColumns;
}
