/** The commands that a person waits for when two million series are wanted: `status`, `gaps`, `backfills list`. Real processes. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { countWhenDue } from '../../src/background/service/counting.ts';
import { systemClock } from '../../src/clock.ts';
import { DAY } from '../../src/core/interval.ts';
import { keepInstance } from '../../src/store/work/instance.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { makeManySeries, SERIES_OF_A_COIN } from '../support/many-series.ts';
import { type Measured, runMeasured } from './measured-cli.ts';
import { median, spread, table, thousands, timed, verdict } from './rounds.ts';

const SERIES = Number(process.env.BENCH_SERIES ?? 2_000_000);
const REQUESTS = Number(process.env.BENCH_REQUESTS ?? 864_000);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const COINS = Math.ceil(SERIES / SERIES_OF_A_COIN);
/** The last two have no promised time. */
const COMMANDS = [['status'], ['gaps', '--limit', '50'], ['backfills', 'list'], ['backfills', 'show', '1'], ['quota']];
const PROMISED = 3;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase({ max: 4 });
  await makeManySeries(database.sql, { coins: COINS, requests: REQUESTS });
});
afterAll(() => database?.drop());

it(`answers within a second with ${thousands(SERIES)} series wanted`, async () => {
  const counting = await timed(() => countWhenDue({ clock: systemClock, database }));
  const lines: [string, string][] = [['counted by the service', `${(counting / 1000).toFixed(1)} s`]];
  for (const isServed of [true, false]) {
    for (const [i, args] of [['--version'], ...COMMANDS].entries()) {
      const runs: Measured[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        // A running service that does nothing meanwhile, or one that died long ago.
        const at = systemClock.now() - (isServed ? 0 : DAY);
        await database.sql`delete from ops.instance`;
        await keepInstance(database.sql, { owner: 'a:1', roles: ['worker'], startedAt: at, heartbeatAt: at });
        runs.push(await runMeasured(args, { DATABASE_URL: database.url }));
      }
      for (const { code, err } of runs) expect(code, err).toBe(0);
      const seconds = runs.map(({ ms }) => ms / 1000);
      const isPromised = i <= PROMISED;
      lines.push([
        `${args.join(' ')}${isServed ? '' : ', no service'}${isPromised ? ' (≤ 1 s)' : ''}`,
        `${spread(seconds)} s${isPromised ? ` ${verdict(median(seconds) <= 1)}` : ''}; processor of the command ${spread(
          runs.map((run) => run.cpuMs),
          0,
        )} ms`,
      ]);
    }
  }
  const title = `${thousands(COINS * SERIES_OF_A_COIN)} series of ${thousands(COINS)} coins, ${thousands(REQUESTS)} requests in a day`;
  console.info(table(`${title}, median of ${ROUNDS}`, lines));
});
