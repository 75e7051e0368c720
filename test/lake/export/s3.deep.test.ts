/** An export to S3-compatible storage: it is killed (kill -9) during an upload, and a large one uses little memory. */
import { ListMultipartUploadsCommand, ListObjectsV2Command, ListPartsCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fillRecorded } from '../../bench/export-warehouse.ts';
import { runMeasured } from '../../bench/measured-cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { runCli, startCli } from '../../support/program.ts';
import { createRelay } from '../../support/relay.ts';
import { startS3 } from '../../support/s3-server.ts';

const server = await startS3();

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  // About 105 MB as CSV: seven parts.
  await fillRecorded(database.sql, 800_000, { withCaps: true });
});
afterAll(async () => {
  await database?.drop();
  await server?.stop();
});

const env = () => ({ DATABASE_URL: database.url, ...server!.env });
const out = () => `s3://${server!.bucket}/killed`;
const argv = () => ['export', '--what', 'candles', '--format', 'csv', '--layout', 'single', '--out', out(), '--json'];

async function objects(): Promise<string[]> {
  const found = await server!.client.send(new ListObjectsV2Command({ Bucket: server!.bucket, Prefix: 'killed/' }));
  return (found.Contents ?? []).map(({ Key }) => Key!);
}

async function uploads(): Promise<{ readonly Key: string; readonly UploadId: string }[]> {
  const found = await server!.client.send(new ListMultipartUploadsCommand({ Bucket: server!.bucket }));
  return (found.Uploads ?? []).map(({ Key, UploadId }) => ({ Key: Key!, UploadId: UploadId! }));
}

/** How many parts the running upload has stored. */
async function parts(): Promise<number> {
  const [upload] = await uploads();
  if (upload === undefined) return 0;
  const found = await server!.client
    .send(new ListPartsCommand({ Bucket: server!.bucket, ...upload }))
    .catch(() => null);
  return found?.Parts?.length ?? 0;
}

test.skipIf(server === null)(
  'a kill during an upload leaves no file; the next run removes the parts and completes the export',
  async () => {
    // All parts pass through this process: while it is blocked, none does, so the upload cannot end before the kill.
    const relay = await createRelay(server!.url);
    const { process: child, ended } = await startCli(argv(), { ...env(), AWS_ENDPOINT_URL: relay.url });
    await expect.poll(parts, { timeout: 120_000, interval: 20 }).toBeGreaterThan(1);
    child.kill('SIGKILL');
    expect((await ended).signal).toBe('SIGKILL');
    await relay.close();
    expect((await uploads()).map(({ Key }) => Key)).toEqual(['killed/candles.csv']);
    expect((await objects()).filter((key) => !key.includes('.unfinished/'))).toEqual([]);
    const { code, err, rssMb } = await runMeasured(argv(), env());
    expect([code, err]).toEqual([0, '']);
    expect(await uploads()).toEqual([]);
    expect(await objects()).toEqual(['killed/candles.csv', 'killed/manifest.json']);
    expect(rssMb).toBeLessThan(250);
    const verified = await runCli(['verify', '--files', out(), '--json'], env());
    expect([verified.code, JSON.parse(verified.out).findings]).toEqual([0, []]);
    process.stdout.write(`largest resident size of the export: ${rssMb.toFixed(0)} MB\n`);
  },
);
