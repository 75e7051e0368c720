/** An instant on a page: in UTC, and its distance from now. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../clock.ts';
import { formatInstant, formatRelative } from '../../core/format.ts';

export const Moment: FC<{ readonly at: Instant; readonly now: Instant }> = ({ at, now }) => (
  <time datetime={new Date(at).toISOString()} title={formatRelative(at, now)}>
    {formatInstant(at)}
  </time>
);

/** Shows only the distance from now. The instant is the title, and appears on paper. */
export const Ago: FC<{ readonly at: Instant; readonly now: Instant }> = ({ at, now }) => (
  <time datetime={new Date(at).toISOString()} title={formatInstant(at)} class="ago nowrap">
    {formatRelative(at, now)}
  </time>
);

/** A range of time for people, to the minute: `about 2026-11-26 14:20Z`, or `between … and …`. */
export function rangeOfTime(from: Instant, to: Instant): string {
  const [first, last] = [from, to].map((at) => formatInstant(Math.round(at / 60_000) * 60_000));
  return first === last ? `about ${first}` : `between ${first} and ${last}`;
}
