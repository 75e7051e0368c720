/** `chandler export` and `verify --files` with `s3://`, through the program's own settings. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fillAll } from '../../lake/filled.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { createRelay } from '../../support/relay.ts';
import { type S3Server, startS3 } from '../../support/s3-server.ts';

const server = await startS3();
const strict = server === null ? null : await startS3({ checksKeys: true });

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await fillAll(database.sql);
});
afterAll(async () => {
  await database?.drop();
  await server?.stop();
  await strict?.stop();
});

const envOf = ({ env }: S3Server, more: Readonly<Record<string, string>> = {}): Record<string, string> => ({
  DATABASE_URL: database.url,
  ...env,
  ...more,
});

test.skipIf(server === null)('export writes to a bucket, updates it after changes, and verify checks it', async () => {
  const out = `s3://${server!.bucket}/by/hand`;
  const env = envOf(server!);
  const first = await runCommand(['export', '--out', out, '--what', 'candles,tickers', '--json'], { env });
  expect([first.code, first.err]).toEqual([0, '']);
  const { files, written } = JSON.parse(first.out).export;
  expect([files > 5, written.files]).toEqual([true, files]);
  const again = await runCommand(['export', '--out', `${out}/`, '--what', 'candles,tickers', '--json'], { env });
  expect(JSON.parse(again.out).export.written.files).toBe(0);
  const verified = await runCommand(['verify', '--files', out, '--json'], { env });
  expect([verified.code, JSON.parse(verified.out).findings]).toEqual([0, []]);
  const other = await runCommand(['export', '--out', out, '--what', 'candles'], { env });
  expect([other.code, other.err]).toEqual([2, expect.stringContaining('has an export of')]);
});

test.skipIf(strict === null)('wrong keys are called a wrong setting, and no output contains the secret', async () => {
  const out = `s3://${strict!.bucket}/x`;
  const env = envOf(strict!, { LOG_LEVEL: 'trace', AWS_SESSION_TOKEN: 'a-session-token-nobody-may-see' });
  for (const argv of [
    ['export', '--out', out],
    ['verify', '--files', out],
  ]) {
    const { code, out: text, err } = await runCommand(argv, { env });
    expect([code, err]).toEqual([
      2,
      expect.stringMatching(/failed: the storage does not know the access key; correct AWS_ACCESS_KEY_ID/),
    ]);
    for (const secret of [env.AWS_SECRET_ACCESS_KEY!, env.AWS_SESSION_TOKEN!]) expect(text + err).not.toContain(secret);
  }
});

test.skipIf(server === null)(
  'a bucket that does not exist is a wrong setting, and storage that is down is a failure',
  async () => {
    const nowhere = await runCommand(['export', '--out', 's3://not-there-at-all/x'], { env: envOf(server!) });
    expect([nowhere.code, nowhere.err]).toEqual([
      2,
      expect.stringMatching(/there is no such bucket; make it, or correct/),
    ]);
    const relay = await createRelay(server!.url);
    relay.cut();
    const env = envOf(server!, { AWS_ENDPOINT_URL: relay.url });
    const down = await runCommand(['verify', '--files', `s3://${server!.bucket}/x`], { env });
    expect([down.code, down.err]).toEqual([1, expect.stringMatching(/no answer \(ECONNRESET\); try again later/)]);
    await relay.close();
  },
);

test.skipIf(server === null)('doctor says whether the lake in a bucket can be written', async () => {
  const checked = async (lake: string, env: Readonly<Record<string, string>>) => {
    const { out } = await runCommand(['doctor', '--json'], { env: { ...env, CHANDLER_LAKE_URL: lake } });
    return (JSON.parse(out) as { name: string }[]).find(({ name }) => name === 'lake');
  };
  const lake = `s3://${server!.bucket}/lake`;
  expect(await checked(lake, envOf(server!))).toMatchObject({ state: 'ok', found: `${lake}, nothing there yet` });
  expect(await checked(lake, envOf(strict!))).toMatchObject({
    state: 'fail',
    found: expect.stringContaining('the storage does not know the access key'),
  });
});
