/** Services of one database that keep data for different times. */
import { expect, onTestFinished, test } from 'vitest';
import { runService } from '../../../src/background/service/service.ts';
import { systemClock } from '../../../src/clock.ts';
import { parseConfig } from '../../../src/config.ts';
import { createLog } from '../../../src/log.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase } from '../../support/database.ts';

test('doctor names each retention setting that differs between the services of a database and itself', async () => {
  const database = await createTestDatabase();
  const stop = new AbortController();
  const running: Promise<unknown>[] = [];
  onTestFinished(async () => {
    stop.abort();
    await Promise.all(running);
    await database.drop();
  });
  const env = { DATABASE_URL: database.url, CHANDLER_LISTEN: '127.0.0.1:0' };
  const start = async (owner: string, settings: Record<string, string>) => {
    const parsed = parseConfig({ ...env, ...settings });
    if ('problems' in parsed) throw new Error(parsed.problems.join());
    await new Promise<void>((onReady) => {
      const service = runService({
        ...{ config: parsed.ok, clock: systemClock, log: createLog({ level: 'fatal', write: () => undefined }) },
        ...{ roles: ['http'], owner, concurrency: 1, migrate: false, signal: stop.signal, onReady },
        start: { actor: 'me@here', command: 'service --role http', env: { ...env, ...settings } },
      });
      running.push(service);
    });
  };
  const doctor = async (settings: Record<string, string>) => {
    const { out } = await runCommand(['doctor', '--json'], { env: { ...env, ...settings } });
    return (JSON.parse(out) as { name: string }[]).filter(({ name }) => name === 'retention');
  };
  const hourly = { CHANDLER_KEEP_CANDLES: '5m=90d,1h=2y' };
  await start('a:1', { ...hourly, CHANDLER_KEEP_TICKERS: '90d' });
  // Written in other words, and a default.
  expect(await doctor({ CHANDLER_KEEP_CANDLES: '1h=730d 5m=90d' })).toEqual([]);
  expect(await doctor({})).toEqual([
    {
      ...{ name: 'retention', state: 'warn' },
      found:
        'CHANDLER_KEEP_CANDLES is 5m=90d 1h=730d for a:1; forever for this process: one removes candles that another fetches again',
      fix: 'set the same CHANDLER_KEEP_CANDLES for all services and commands of this database, and restart the services',
    },
  ]);
  await start('b:2', { ...hourly, CHANDLER_KEEP_TICKERS: '30d' });
  await start('c:3', { ...hourly, CHANDLER_KEEP_TICKERS: '30d' });
  expect(await doctor(hourly)).toMatchObject([
    {
      found: expect.stringMatching(
        /^CHANDLER_KEEP_TICKERS is 90d for a:1; 30d for b:2, c:3: one removes rows that another keeps$/,
      ),
    },
  ]);
  // What tells which service it was is no setting.
  const { out } = await runCommand(['log', '--json'], { env });
  expect(out).not.toContain('owner');
  stop.abort();
  await Promise.all(running);
  expect(await doctor({})).toEqual([]);
});
