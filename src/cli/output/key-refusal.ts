/** The text of `status` and `doctor` when the upstream refuses the key. */
import type { Instant } from '../../clock.ts';
import { formatInstant, formatRelative } from '../../core/format.ts';
import type { StandingRefusal } from '../../ingest/request/account.ts';

/** Since when, why, what to do, and what Chandler does automatically. */
export function describeRefusal({ message, since, at, retryAt }: StandingRefusal, now: Instant): string {
  const tried = at === since ? '' : ` (tried last ${formatRelative(at, now)})`;
  const again =
    retryAt > now ? `a service tries it again ${formatRelative(retryAt, now)}` : 'a service tries it again at once';
  return `Key refused since ${formatInstant(since)}${tried}: ${message}. Nothing is fetched meanwhile; ${again}, and chandler doctor --online does so now.`;
}
