/** The states of a stretch in the coverage map, in words, and their looks. */
import type { CoverageState } from '../../views/dashboard/coverage-map.ts';

/** The states that a backfill would request. For the others it says that nothing can be requested. */
export const FETCHABLE_STATES: readonly CoverageState[] = ['not asked yet', 'malformed'];

/** The looks of stretches: each has one colour and one pattern. */
export const LOOKS = {
  final: 'final: a candle',
  twice: 'empty, confirmed by two answers',
  once: 'empty by one answer, not confirmed yet',
  provisional: 'provisional: too recent to be final',
  pending: 'pending: a second answer must confirm it',
  missing: 'not asked yet',
  refused: 'refused by the plan',
  failed: 'failed, or the answer is not usable',
} as const;
export type Look = keyof typeof LOOKS;

export const STATE_WORDS: Readonly<Record<CoverageState, { readonly look: Look; readonly text: string }>> = {
  final: { look: 'final', text: 'final' },
  'told twice': { look: 'twice', text: 'empty, confirmed by two answers' },
  'told once': { look: 'once', text: 'empty by one answer, not confirmed yet' },
  'not asked yet': { look: 'missing', text: 'not asked yet' },
  implausible: { look: 'pending', text: 'implausible: a second answer must confirm it' },
  provisional: { look: 'provisional', text: 'provisional: too recent to be final' },
  unconfirmed: {
    look: 'pending',
    text: 'unconfirmed: empty at the edge of an answer, a second answer must confirm it',
  },
  malformed: { look: 'failed', text: 'malformed: the upstream sent an invalid row' },
  'history limit': { look: 'refused', text: 'refused: beyond the history limit of the plan' },
  interval: { look: 'refused', text: 'refused: the plan does not include this interval' },
  'unknown coin': { look: 'failed', text: 'refused: the upstream does not know the coin' },
  forbidden: { look: 'refused', text: 'refused: this account may not read it' },
  'bad request': { look: 'failed', text: 'refused: the upstream answered "bad request"' },
};
