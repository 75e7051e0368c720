/** What is waited for, in words: the reasons of a denied take and of a snooze as a sentence's first half. */
import type { Instant } from '../../clock.ts';
import { formatInstant, formatRelative } from './format.ts';

const WORDS: Readonly<Record<string, string>> = {
  month: "this month's requests are used up",
  day: "today's requests are used up",
  'set aside': 'the rest of the quota is set aside for scheduled work',
  spent: 'the upstream says that the quota is used up',
  limited: 'the upstream asked for a pause',
  failing: 'the upstream keeps failing on what is left',
  doubt: 'what was answered is doubted, and asked about again',
  unavailable: 'the upstream does not answer as it should',
};

/** `today's requests are used up`; a reason nobody has words for stays as it is. */
export function waitingFor(reason: string): string {
  return WORDS[reason] ?? reason;
}

/** `2026-11-22 00:00Z (in 9h 57m; 2026-11-22 01:00 here)`: the last part only where the clocks on the wall are not UTC's. */
export function formatMoment(at: Instant, now: Instant): string {
  const minutesAhead = -new Date(at).getTimezoneOffset();
  const here = minutesAhead === 0 ? '' : `; ${formatInstant(at + minutesAhead * 60_000).replace(/Z$/, '')} here`;
  return `${formatInstant(at)} (${formatRelative(at, now)}${here})`;
}
