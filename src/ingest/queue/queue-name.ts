/** The name of a queue. It decides which processes share the queue. */
import { createHash } from 'node:crypto';

/**
 * Processes share a queue only if they would request a chunk in the same way: with the same key, at the same address, and under the same plan. Each
 * kind of job has its own queue. `installation`: several warehouses may share one Redis, and a series id of one means nothing in another.
 */
export function queueNameOf(
  installation: string,
  client: {
    readonly accountId: string;
    readonly baseUrl: string;
    readonly plan: { readonly name: string; readonly candlesPerRequest: number };
  },
  kind: 'chunks' | 'fresh' | 'ticks' = 'chunks',
): string {
  const { accountId, baseUrl, plan } = client;
  const alike = JSON.stringify([accountId, baseUrl, plan.name, plan.candlesPerRequest]);
  return `${kind}-${installation}-${createHash('sha256').update(alike).digest('hex').slice(0, 8)}`;
}
