/** Which processes share a queue. */
import { createHash } from 'node:crypto';

/**
 * The same, for each kind of job, for those only that would ask a chunk alike: a worker asks whatever it takes with its own key, at its own address, and
 * leaves out what its own plan does not show.
 */
export function queueNameOf(
  /** Several warehouses may share a Redis; the chunks of one name series that the others do not have. */
  installation: string,
  asker: {
    readonly accountId: string;
    readonly baseUrl: string;
    readonly plan: { readonly name: string; readonly candlesPerRequest: number };
  },
  kind: 'chunks' | 'fresh' | 'ticks' = 'chunks',
): string {
  const { accountId, baseUrl, plan } = asker;
  const alike = JSON.stringify([accountId, baseUrl, plan.name, plan.candlesPerRequest]);
  return `${kind}-${installation}-${createHash('sha256').update(alike).digest('hex').slice(0, 8)}`;
}
