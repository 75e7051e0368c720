/** The reasons why requests wait, in words. */
import type { Instant } from '../../clock.ts';
import { formatInstant, formatRelative } from '../../core/format.ts';

const WORDS: Readonly<Record<string, string>> = {
  month: "this month's requests are used up",
  day: "today's requests are used up",
  reserved: 'the rest of the quota is reserved for scheduled work',
  'quota exhausted': 'the upstream says that the quota is used up',
  limited: 'the upstream asked for a pause',
  failing: 'the remaining requests keep failing',
  'second opinion': 'the response looks wrong; retrying',
  'day is late': 'the upstream does not yet serve the day that ended last',
  'invalid rows': 'some rows were invalid; retrying',
  'another backfill': 'its missing slots belong to backfills before it, which fetch them',
  'another process': 'another process is fetching the rest, for another backfill or this one',
  'key refused': 'the upstream refuses the key',
  'not final yet': 'some answers were not final; Chandler requests them again',
  unavailable: 'the upstream gives no valid answers',
};

/** `today's requests are used up`. A reason without words stays as it is. */
export function waitingFor(reason: string): string {
  return WORDS[reason] ?? reason;
}

/** `2026-11-22 00:00Z (in 9h 57m; 2026-11-22 01:00 here)`: the local time is added where it differs from UTC. */
export function formatMoment(at: Instant, now: Instant): string {
  const minutesAhead = -new Date(at).getTimezoneOffset();
  const here = minutesAhead === 0 ? '' : `; ${formatInstant(at + minutesAhead * 60_000).replace(/Z$/, '')} here`;
  return `${formatInstant(at)} (${formatRelative(at, now)}${here})`;
}
