/** Whether all services of the database use the same queue. */
import type { App } from '../../app.ts';
import { liveInstances, readRunningSettings } from '../../store/work/instance.ts';
import { type Check, warn } from './check.ts';

/**
 * A warning when the queues certainly differ. The hosts of two addresses are not compared, because one Redis may have several names. A service
 * with the role `http` alone needs no queue.
 */
export async function checkQueues({ clock, database: { sql } }: App): Promise<Check[]> {
  const now = clock.now();
  const workers = (await liveInstances(sql, now)).filter(({ roles }) => roles.some((role) => role !== 'http'));
  const owners = new Set(workers.map(({ owner }) => owner));
  const queues = new Map<string, string[]>();
  for (const { owner, settings } of await readRunningSettings(sql, now)) {
    if (!owners.has(owner)) continue;
    const place = placeOf(settings.REDIS_URL);
    queues.set(place, [...(queues.get(place) ?? []), owner]);
  }
  if (queues.size < 2) return [];
  const places = [...queues].map(([place, owners]) => `${place} for ${owners.join(', ')}`).join('; ');
  return [
    warn(
      'queue',
      `the queue is ${places}: each takes the chunks of the others for lost, and requests them again`,
      'set the same REDIS_URL for all services of this database, or leave it out everywhere, and restart them',
    ),
  ];
}

function placeOf(redisUrl: string | undefined): string {
  if (redisUrl === undefined) return 'in Postgres';
  return `in Redis, database ${new URL(redisUrl).pathname.slice(1) || '0'}`;
}
