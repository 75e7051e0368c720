/** What every process that serves HTTP does at its start and at its end. */
import type { Releasers } from '../../app.ts';
import type { Clock } from '../../clock.ts';
import type { Log } from '../../log.ts';
import type { Listening } from '../../service/http/listen.ts';
import type { ServiceStatus } from '../health/service-status.ts';

/** Tells the log and `onListening` that `paths` are served. */
export function announceServer(
  server: Listening,
  paths: string,
  { log, onListening }: { readonly log: Log; readonly onListening?: ((url: string) => void) | undefined },
): void {
  log.info({ url: server.url }, `serving ${paths} at ${server.url}`);
  onListening?.(server.url);
}

/**
 * Closes the server first, so that nothing is served by what is closed already, then everything else in reverse order. Requests under
 * way have `graceMs` to end, and the whole has `goodbyeMs`.
 */
export async function shutDown(
  { server, releasers }: { readonly server: Listening | null; readonly releasers: Releasers },
  { status, clock, log }: { readonly status: ServiceStatus; readonly clock: Clock; readonly log: Log },
  { graceMs, goodbyeMs }: { readonly graceMs: number; readonly goodbyeMs: number },
): Promise<void> {
  status.phase = 'stopping';
  const closing = Promise.resolve(server?.close(graceMs)).finally(() => releasers.release());
  await Promise.race([closing, clock.sleep(goodbyeMs)]);
  log.info('stopped');
}
