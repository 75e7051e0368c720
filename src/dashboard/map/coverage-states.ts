/** The states of a stretch in the coverage map, in words, and their looks. */
import type { CoverageState } from '../../views/dashboard/coverage-map.ts';

/** The states that a backfill would request. For the others it says that nothing can be requested. */
export const FETCHABLE_STATES: readonly CoverageState[] = ['not asked yet', 'malformed'];

/** The looks of stretches: each has one colour and one pattern. */
export const LOOKS = {
  final: 'final: a candle',
  twice: 'empty: two answers told so',
  once: 'empty, but only one answer told so',
  provisional: 'provisional: too young to be final',
  pending: 'pending: a second answer must agree',
  missing: 'not asked yet',
  refused: 'refused by the plan',
  failed: 'failed, or the answer cannot be used',
} as const;
export type Look = keyof typeof LOOKS;

export const STATE_WORDS: Readonly<Record<CoverageState, { readonly look: Look; readonly text: string }>> = {
  final: { look: 'final', text: 'final' },
  'told twice': { look: 'twice', text: 'empty, told by two answers' },
  'told once': { look: 'once', text: 'empty, told by one answer' },
  'not asked yet': { look: 'missing', text: 'not asked yet' },
  implausible: { look: 'pending', text: 'implausible: a second answer must say the same' },
  provisional: { look: 'provisional', text: 'provisional: too young to be final' },
  unconfirmed: { look: 'pending', text: 'unconfirmed: answered empty, a second answer must agree' },
  malformed: { look: 'failed', text: 'malformed: the row that was given cannot be true' },
  'history limit': { look: 'refused', text: 'refused: beyond the history limit of the plan' },
  interval: { look: 'refused', text: 'refused: the plan does not have this interval' },
  'unknown coin': { look: 'failed', text: 'refused: the upstream does not know the coin' },
  forbidden: { look: 'refused', text: 'refused: forbidden to this account' },
  'bad request': { look: 'failed', text: 'refused: the upstream calls it a bad request' },
};
