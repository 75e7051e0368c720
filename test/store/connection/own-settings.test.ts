/** A database whose administrator has changed settings of Postgres on which Chandler's statements rely. */
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { listen } from '../../../src/service/http/listen.ts';
import { createSimulator } from '../../../src/simulate.ts';
import { openDatabase } from '../../../src/store/connection/connect.ts';
import { openPgClient } from '../../../src/store/connection/pg-client.ts';
import { runCommand } from '../../support/cli.ts';
import { createEmptyDatabase } from '../../support/database.ts';

const SETTINGS = {
  default_transaction_isolation: 'serializable',
  extra_float_digits: '-3',
  bytea_output: 'escape',
  standard_conforming_strings: 'off',
  idle_session_timeout: '600s',
};

const READ = `select current_setting('default_transaction_isolation') as isolation, current_setting('extra_float_digits') as digits,
  current_setting('bytea_output') as bytes,
  current_setting('standard_conforming_strings') as strings, current_setting('idle_session_timeout') as idle`;
const RELIED_ON = { isolation: 'read committed', digits: '1', bytes: 'hex', strings: 'on', idle: '0' };

async function createDatabaseWithSettings(): Promise<string> {
  const database = await createEmptyDatabase({ max: 1 });
  onTestFinished(() => database.drop());
  const { pathname } = new URL(database.url);
  for (const [name, value] of Object.entries(SETTINGS))
    await database.sql.unsafe(`alter database ${pathname.slice(1)} set ${name} = '${value}'`);
  return database.url;
}

test('commands migrate it, fill it, and show every price as the upstream sent it', async () => {
  const onError = (error: unknown) => {
    throw error;
  };
  const { fetch } = createSimulator({ market: 'made-up', coins: 1, clock: systemClock, unlimited: true, onError });
  const upstream = await listen(fetch, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => upstream.close());
  const env = {
    DATABASE_URL: await createDatabaseWithSettings(),
    CHANDLER_BASE_URL: `${upstream.url}/v1`,
    CHANDLER_PLAN: 'enterprise',
  };
  expect(await runCommand(['migrate'], { env })).toMatchObject({ code: 0, err: '' });
  const span = ['--start', '2024-01-01', '--end', '2024-01-02'];
  expect(await runCommand(['backfill', 'btc-bitcoin', ...span, '--yes'], { env })).toMatchObject({ code: 0 });
  const sent = await globalThis.fetch(`${upstream.url}/v1/coins/btc-bitcoin/ohlcv/historical?start=2024-01-01&limit=1`);
  const [candle] = (await sent.json()) as [{ readonly open: number; readonly close: number }];
  const { out } = await runCommand(['explain', 'btc-bitcoin', '24h', '2024-01-01'], { env });
  expect(out).toContain(`The slot is final: open ${candle.open},`);
  expect(out).toContain(`close ${candle.close},`);
});

test('the connections of both drivers have the settings that Chandler relies on', async () => {
  const url = await createDatabaseWithSettings();
  const database = await openDatabase({ url, max: 1 });
  const client = await openPgClient({ url, applicationName: 'chandler test' });
  try {
    expect(await database.sql.unsafe(READ)).toEqual([RELIED_ON]);
    expect((await client.query(READ)).rows).toEqual([RELIED_ON]);
  } finally {
    await Promise.all([database.close(), client.end()]);
  }
});
