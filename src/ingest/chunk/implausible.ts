/** Weighs an implausible answer against the ones before it: believed, or withheld until a second one says the same. Pure. */
import { createHash } from 'node:crypto';
import type { Instant } from '../../clock.ts';
import type { CandleColumns } from '../../core/candle.ts';
import { settledUntil } from '../../core/interval.ts';
import { RULES, weighAnswer } from '../../core/second-opinion.ts';
import { contains, intersect, type Span, subtract } from '../../core/span.ts';
import type { Verdict } from '../../store/candle/chunk.ts';
import type { Pending } from '../../store/work/second-opinion.ts';
import type { Weighing } from './evidence.ts';
import type { Implausible } from './implausible-candles.ts';
import { findImplausible } from './plausibility.ts';

const NOTHING = {
  answeredSlots: [],
  proven: [],
  unconfirmedSlots: [],
  confirmed: [],
  uncontradicted: [],
  contradicted: [],
};

/** `found` null: the answer is plausible. `verdict` null: it is plausible or believed; else nothing of the answer is stored now. */
type Doubt = { readonly found: Implausible | null; readonly verdict: Verdict | null };

export function weighImplausible({
  span,
  interval,
  findings,
  sentAt,
  heardAt,
  asOf,
  ageMs,
  known,
  isOfHoles = false,
}: Weighing): Doubt {
  const { candles } = findings;
  const settled = [{ from: span.from, to: Math.min(Math.max(settledUntil(asOf, interval), span.from), span.to) }];
  const isSettled = settled[0]!.from < settled[0]!.to;
  const found = findImplausible({ interval, candles, beside: known.beside, samples: known.samples });
  if (found === null) return { found, verdict: null };
  // A question about holes is about final slots: nothing of its answer may change them before a second one agrees.
  const open = subtract(isOfHoles ? [span] : subtract([span], known.covered), known.answeredByYounger);
  const pieces = isSettled ? [...intersect(open, settled), ...subtract(open, settled)] : open;
  // Every slot has been answered meanwhile: nothing is missing, so there is no second opinion to wait for, and what is stored stands.
  if (pieces.length === 0) return withheld([], heardAt, found);
  const pending = pieces.flatMap((piece): Pending[] => {
    // The candles of a slot that has not settled change with every answer: of these the kind of what is implausible must agree.
    const digest = contains(settled, piece.from) ? digestOf(candles, piece) : '';
    const before = known.pending.find(
      (p) => p.claim === 'implausible' && p.span.from === piece.from && p.span.to === piece.to,
    );
    const { kind, digest: saidBefore } = before?.evidence ?? {};
    const says = kind === found.kind && saidBefore === digest ? 'agrees' : 'differs';
    const weighed = weighAnswer(before ?? null, { says, sentAt, heardAt, ageMs }, RULES.implausible);
    if (weighed.kind !== 'waiting') return [];
    const { detail } = found;
    const evidence = weighed.isCounted ? { kind: found.kind, detail, digest } : before!.evidence;
    return [{ span: piece, claim: 'implausible', evidence, ...weighed.standing }];
  });
  if (pending.length === 0) return { found, verdict: null };
  return withheld(pending, Math.max(...pending.map(({ retryAt }) => retryAt)), found);
}

function withheld(pending: readonly Pending[], until: Instant, found: Implausible): Doubt {
  return { found, verdict: { ...NOTHING, pending, withheld: { until, detail: found.detail } } };
}

function digestOf(candles: CandleColumns, { from, to }: Span): string {
  const inside = candles.openTime.flatMap((at, i) =>
    at >= from && at < to ? [[at, ...Object.values(candles).map((column) => column[i])]] : [],
  );
  return createHash('sha256').update(JSON.stringify(inside)).digest('hex').slice(0, 32);
}
