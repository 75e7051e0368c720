/** How backfills ended, in one word. It decides the exit code of `chandler backfill` and the state of a backfill of the service. */
import type { RemainingSlots } from '../../views/operations/remaining-slots.ts';
import type { BackfillEnd } from './progress.ts';

/**
 * `complete`: every requested slot has its candle, is known to be empty, or was too young to be final. `work left`: a later run would fetch
 * something. `lacking`: the upstream refused something, or something failed, and the same command alone would fetch nothing more.
 */
export type Verdict = 'interrupted' | 'misconfigured' | 'work left' | 'lacking' | 'complete';

export type Ended = {
  readonly end: BackfillEnd;
  /** What is left of the target; null: unknown, because the database was unavailable. */
  readonly left: readonly RemainingSlots[] | null;
};

/** The verdict on one backfill, or on several together. The first verdict that applies, in this order, counts. */
export function verdictOf(ended: readonly Ended[]): Verdict {
  const hasEnded = (kind: BackfillEnd['kind']) => ended.some(({ end }) => end.kind === kind);
  const has = (fates: readonly RemainingSlots['fate'][]) =>
    ended.some(({ left }) => left?.some(({ fate }) => fates.includes(fate)) ?? false);
  if (hasEnded('interrupted')) return 'interrupted';
  if (hasEnded('configurationError')) return 'misconfigured';
  if (hasEnded('stopped') || has(['later']) || ended.some(({ left }) => left === null)) return 'work left';
  return has(['refused', 'failed']) ? 'lacking' : 'complete';
}
