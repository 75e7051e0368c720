/** The checks that send no request to the upstream, in an order in which an early failure explains the later ones. */
import type { App } from '../../app.ts';
import type { Config } from '../../config.ts';
import { readHeldLock } from '../../views/operations/blocking-sessions.ts';
import { checkForAnalysts } from './analyst-checks.ts';
import { type Check, failWith } from './check.ts';
import { checkDatabase, checkRefusal } from './database-checks.ts';
import { checkLake, checkWhichLake } from './lake-check.ts';
import { checkQueues } from './queue-check.ts';
import { checkRetention } from './retention-check.ts';
import {
  checkAttestations,
  checkConfiguration,
  checkHeartbeat,
  checkHome,
  checkRedis,
  checkWebhook,
} from './settings-checks.ts';

type Terms = {
  /** Whether the webhook check sends a test message. */
  readonly online: boolean;
  /** The user of the command may see and change more than a visitor of a page. */
  readonly by: 'command' | 'page';
  readonly signal: AbortSignal;
};

/** Checks that need no database. */
export async function* checkSettings(config: Config, { online, by, signal }: Terms): AsyncGenerator<Check> {
  yield* checkConfiguration(config, { showsKeyLength: by === 'command' });
  yield* await checkHome(config);
  yield* await checkAttestations(config);
  yield* await checkLake(config, { mayWrite: by === 'command' });
  yield* await checkRedis(config.redisUrl);
  yield* await checkWebhook(config.notify, { send: online, signal });
  yield* checkHeartbeat(config.heartbeatUrl);
}

/** Checks of the open database, except what a service has learned of the key: the check of the upstream must come before that one. */
export async function* checkWarehouse(app: App): AsyncGenerator<Check> {
  // First, because the other checks may read tables behind the lock. A service is not ready while the lock is held, either.
  const lock = await readHeldLock(app.database.sql, app.clock.now());
  if (lock !== null) yield failWith('lock', lock.message);
  yield* await checkDatabase(app, lock);
  yield* await checkWhichLake(app);
  yield* await checkQueues(app);
  yield* await checkRetention(app);
  // These checks read candles.
  if (lock === null) yield* await checkForAnalysts(app);
}

/** All checks, for a page. */
export async function checksForPage(app: App, signal: AbortSignal): Promise<readonly Check[]> {
  const checks: Check[] = [];
  for await (const check of checkSettings(app.config, { online: false, by: 'page', signal })) checks.push(check);
  for await (const check of checkWarehouse(app)) checks.push(check);
  return [...checks, ...(await checkRefusal(app))];
}
