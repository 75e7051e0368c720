/** What fifty open pages of the dashboard cost a service when nothing happens, compared with the same service without any. Real processes. */
import http from 'node:http';
import { expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createTestDatabase } from '../support/database.ts';
import { startServiceProcess, UNWATCHED } from '../support/service-process.ts';
import { sessionSeconds } from './backend-time.ts';
import { cpuSecondsOf } from './process-use.ts';
import { table, verdict } from './rounds.ts';

const PAGES = Number(process.env.BENCH_PAGES ?? 50);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 60);

it('open pages cost little while nothing happens', { timeout: 10 * 60_000 }, async () => {
  const database = await createTestDatabase({ max: 1 });
  // Nothing answers at this address, and this process sends no requests.
  const env = { DATABASE_URL: database.url, CHANDLER_BASE_URL: 'http://127.0.0.1:9/v1', CHANDLER_PLAN: 'pro' };
  const service = await startServiceProcess('http', { ...env, ...UNWATCHED });
  const open: http.ClientRequest[] = [];
  try {
    const { url } = (await service.said(/^serving \/v1/)) as unknown as { url: string };
    await expect.poll(async () => (await fetch(url)).status, { timeout: 60_000 }).toBe(200);
    const used = async () => {
      await systemClock.sleep(5_000);
      const before = { at: systemClock.now(), cpu: cpuSecondsOf([service.pid]), sessions: await sessionsOf() };
      await systemClock.sleep(SECONDS * 1_000);
      const seconds = (systemClock.now() - before.at) / 1_000;
      return {
        process: (cpuSecondsOf([service.pid]) - before.cpu) / seconds,
        sessions: ((await sessionsOf()) - before.sessions) / seconds,
      };
    };
    const sessionsOf = async () => [...(await sessionSeconds(database.sql)).values()].reduce((sum, s) => sum + s, 0);
    const without = await used();
    let events = 0;
    for (let i = 0; i < PAGES; i++) {
      const page = http.get(`${url}/ui/events`, (answer) => answer.on('data', () => events++));
      page.on('error', () => undefined);
      open.push(page);
    }
    await expect.poll(() => events, { timeout: 60_000 }).toBeGreaterThanOrEqual(PAGES);
    const withPages = await used();
    const percent = (share: number) => `${(100 * share).toFixed(2)} %`;
    console.info(
      table(`${PAGES} open pages, nothing happens, ${SECONDS} s, of one core`, [
        ['the service without a page', percent(without.process)],
        [
          'with them (≤ 2 % more)',
          `${percent(withPages.process)} ${verdict(withPages.process - without.process <= 0.02)}`,
        ],
        ['its Postgres sessions without a page', percent(without.sessions)],
        ['with them', percent(withPages.sessions)],
      ]),
    );
  } finally {
    for (const page of open) page.destroy();
    await service.stop();
    await database.drop();
  }
});
