/** Who runs the schedules, in words for commands. Chandler reserves quota only for schedules that a service runs. */
import type { Instant } from '../../clock.ts';
import { formatInstant, formatRelative, toIso } from '../../core/format.ts';
import { RESERVED_FOR_MS, type Scheduling } from '../../ingest/schedule/scheduling.ts';

/** Null while a service runs them, because there is nothing to explain. */
export function describeScheduling(scheduling: Scheduling, now: Instant): string | null {
  switch (scheduling.kind) {
    case 'running':
      return null;
    case 'stopped': {
      const until = formatInstant(scheduling.seenAt + RESERVED_FOR_MS);
      return `No service runs the schedules now; one last did ${formatRelative(scheduling.seenAt, now)}. Their reservation stays until ${until}.`;
    }
    case 'none': {
      const since = scheduling.seenAt === null ? '' : ` since ${formatInstant(scheduling.seenAt)}`;
      return `No service has run the schedules${since}, so nothing is reserved for them. When a service starts (chandler service), they go first.`;
    }
  }
}

export function schedulingAsJson(scheduling: Scheduling) {
  return {
    state: scheduling.kind,
    seenAt: scheduling.kind === 'running' ? null : toIso(scheduling.seenAt),
    reservedUntil: scheduling.kind === 'stopped' ? toIso(scheduling.seenAt + RESERVED_FOR_MS) : null,
  };
}
