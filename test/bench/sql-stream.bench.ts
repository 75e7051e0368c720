/** `chandler sql` with a large result: memory must not grow with it. The copy is the yardstick for the rows as JSON. */
import { expect, it } from 'vitest';
import { migrate } from '../../src/store/migration/migrate.ts';
import { createTestDatabase } from '../support/database.ts';
import { runMeasured } from './measured-cli.ts';
import { table, thousands, verdict } from './rounds.ts';

const ROWS = Number(process.env.BENCH_ROWS ?? 10_000_000);
const MOST_MB = 150;
// In the `from` clause, Postgres would make all of them first.
const SELECT = `select generate_series(1, ${ROWS}) as i`;

it('chandler sql prints millions of rows in little memory', async () => {
  const database = await createTestDatabase();
  try {
    await migrate(database);
    const run = (...args: string[]) => runMeasured(['sql', ...args], { DATABASE_URL: database.url });
    const none = await run('select 1');
    const copied = await run(`copy (${SELECT}) to stdout`);
    const json = await run('--json', SELECT);
    for (const { code, out } of [copied, json]) {
      expect(code).toBe(0);
      expect(out.trimEnd().split('\n').length).toBe(ROWS);
    }
    const line = ({ ms, rssMb }: typeof none): string =>
      `${rssMb.toFixed(0)} MB (< ${MOST_MB} MB) ${verdict(rssMb < MOST_MB)}, ${thousands((ROWS / ms) * 1000)} rows/s`;
    console.info(
      table(`${thousands(ROWS)} rows`, [
        ['one row, for comparison', `${none.rssMb.toFixed(0)} MB`],
        ['copy to stdout', line(copied)],
        ['--json', line(json)],
        ['--json ÷ copy, time', (json.ms / copied.ms).toFixed(1)],
      ]),
    );
  } finally {
    await database.drop();
  }
});
