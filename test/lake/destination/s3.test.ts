/** S3-compatible storage on a real server: what is stored, and what happens when the network or the writer fails. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import {
  AbortMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Destination, readRange } from '../../../src/lake/destination/destination.ts';
import { DestinationError } from '../../../src/lake/destination/destination-error.ts';
import { openS3, type S3Options } from '../../../src/lake/destination/s3.ts';
import { createRelay, type Relay } from '../../support/relay.ts';
import { type S3Server, startS3 } from '../../support/s3-server.ts';

const server = await startS3();
const strict = server === null ? null : await startS3({ checksKeys: true });
const PART = 5 * 1024 * 1024;

let relay: Relay;
let destination: Destination;
let rounds = 0;
beforeAll(async () => {
  if (server !== null) relay = await createRelay(server.url);
});
beforeEach(() => {
  if (server !== null) destination = open(server);
});
afterAll(async () => {
  await relay?.close();
  await server?.stop();
  await strict?.stop();
});

function open(
  to: S3Server,
  options: S3Options = {},
  endpoint = to.url,
  bucket = to.bucket,
  prefix = `made/up-${++rounds}`,
): Destination {
  const address = { kind: 's3', bucket, prefix } as const;
  return openS3(address, { ...to.settings, endpoint }, { partBytes: PART, ...options });
}

const put = (file: string, text: string, to = destination) => to.put(file, (sink) => sink(Buffer.from(text)));

async function get(file: string, range?: { from: number; to: number }): Promise<string | null> {
  const chunks = await destination.get(file, range);
  if (chunks === null) return null;
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts).toString();
}

async function listed(to = destination): Promise<[string, number][]> {
  const found: [string, number][] = [];
  for await (const { path: file, bytes } of to.list()) found.push([file, bytes]);
  return found.sort();
}

async function uploads(): Promise<string[]> {
  const found = await server!.client.send(new ListMultipartUploadsCommand({ Bucket: server!.bucket }));
  return (found.Uploads ?? []).map(({ Key }) => Key!);
}

/** Bytes that differ in every place, so that a part in the wrong place is noticed. */
function pattern(bytes: number): Buffer {
  const made = Buffer.alloc(bytes);
  for (let i = 0; i + 4 <= bytes; i += 4) made.writeUInt32LE(i, i);
  return made;
}

const errorOf = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => error as DestinationError,
  );

test.skipIf(server === null)('puts, gets, lists and deletes files by their paths', async () => {
  expect(await get('a/b/c.txt')).toBeNull();
  expect(await listed()).toEqual([]);
  await put('a/b=1/c.txt', 'one two');
  await put('d.txt', '');
  expect(await listed()).toEqual([
    ['a/b=1/c.txt', 7],
    ['d.txt', 0],
  ]);
  expect(await get('a/b=1/c.txt')).toBe('one two');
  expect(await get('a/b=1/c.txt', { from: 4, to: 6 })).toBe('tw');
  expect(await get('a/b=1/c.txt', { from: 4, to: 4 })).toBe('');
  await expect(readRange(destination, 'a/b=1/c.txt', { from: 5, to: 9 })).rejects.toThrow(/shorter than 9 bytes/);
  await expect(readRange(destination, 'a/b=1/c.txt', { from: 8, to: 9 })).rejects.toThrow(/shorter than 9 bytes/);
  await put('a/b=1/c.txt', 'three');
  expect(await get('a/b=1/c.txt')).toBe('three');
  await destination.delete('a/b=1/c.txt');
  await destination.delete('a/b=1/c.txt');
  expect(await listed()).toEqual([['d.txt', 0]]);
});

test.skipIf(server === null)('sees only files under its prefix, and lists more than one page', async () => {
  destination = open(server!, { pageFiles: 10 });
  const names = Array.from({ length: 25 }, (_, i) => `f${String(i).padStart(4, '0')}`);
  const prefix = destination.name.replace(`s3://${server!.bucket}/`, '');
  await Promise.all(names.map((name) => put(name, name)));
  for (const Key of [`${prefix}-other/x`, `${prefix}/`])
    await server!.client.send(new PutObjectCommand({ Bucket: server!.bucket, Key, Body: 'x' }));
  expect((await listed()).map(([name]) => name)).toEqual(names);
});

test.skipIf(server === null)('uploads a large file in parts, and it is complete', async () => {
  const bytes = pattern(2 * PART + 12_345);
  await destination.put('big', async (sink) => {
    const piece = Buffer.alloc(1_000_003);
    for (let at = 0; at < bytes.length; at += piece.length) {
      const part = bytes.subarray(at, at + piece.length);
      part.copy(piece);
      await sink(piece.subarray(0, part.length));
      // The caller may reuse its buffer.
      piece.fill(0);
      expect(await listed()).toEqual([]);
    }
  });
  expect(Buffer.from(await readRange(destination, 'big', { from: 0, to: bytes.length })).equals(bytes)).toBe(true);
  expect(await uploads()).toEqual([]);
  await destination.put('exact', async (sink) => sink(bytes.subarray(0, 2 * PART)));
  expect(await listed()).toEqual([
    ['big', bytes.length],
    ['exact', 2 * PART],
  ]);
});

test.skipIf(server === null)('a writer that fails changes nothing and leaves no parts', async () => {
  await put('file', 'before');
  const writing = destination.put('file', async (sink) => {
    await sink(pattern(PART + 1));
    expect(await uploads()).toHaveLength(1);
    throw new Error('no more');
  });
  await expect(writing).rejects.toThrow('no more');
  expect(await get('file')).toBe('before');
  expect(await uploads()).toEqual([]);
});

test.skipIf(server === null)(
  'the sweep removes parts of killed writers, and keeps those of other prefixes',
  async () => {
    const { client, bucket: Bucket } = server!;
    const prefix = destination.name.replace(`s3://${Bucket}/`, '');
    const begun: { Bucket: string; Key: string; UploadId: string | undefined }[] = [];
    for (const Key of [`${prefix}/a/x.parquet`, `${prefix}-other/y`]) {
      const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key }));
      await client.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber: 1, Body: 'half' }));
      begun.push({ Bucket, Key, UploadId });
    }
    await destination.sweep();
    expect(await uploads()).toEqual([`${prefix}-other/y`]);
    await client.send(new AbortMultipartUploadCommand(begun[1]!));
  },
);

test.skipIf(server === null)('continues reading where the connection was cut', async () => {
  const bytes = pattern(PART + 77);
  const through = open(server!, {}, relay.url);
  await through.put('big', (sink) => sink(bytes));
  let at = 0;
  let cuts = 0;
  for await (const chunk of (await through.get('big'))!) {
    expect(bytes.subarray(at, at + chunk.length).equals(chunk)).toBe(true);
    at += chunk.length;
    if (cuts < 3 && at > (cuts + 1) * 500_000) {
      cuts++;
      relay.cut();
      relay.mend();
    }
  }
  expect([at, cuts]).toEqual([bytes.length, 3]);
});

test.skipIf(server === null)(
  'reconnects when the connection is cut during a write, and the file is complete',
  async () => {
    const bytes = pattern(3 * PART);
    const through = open(server!, {}, relay.url);
    await through.put('big', async (sink) => {
      for (let at = 0; at < bytes.length; at += PART / 2) {
        await sink(bytes.subarray(at, at + PART / 2));
        relay.cut();
        relay.mend();
      }
    });
    expect(Buffer.from(await readRange(through, 'big', { from: 0, to: bytes.length })).equals(bytes)).toBe(true);
    expect(await uploads()).toEqual([]);
  },
);

test.skipIf(server === null)(
  'a server that does not answer counts as unavailable; nothing changes, and the next sweep cleans up',
  async () => {
    const to = (options: S3Options) => open(server!, options, relay.url, server!.bucket, 'made/up-silent');
    const through = to({ attempts: 2, idleMs: 300 });
    // The short timeout is for silence only: an answering server may be as slow as its machine.
    const patient = to({});
    await put('file', 'before', patient);
    const writing = through.put('file', async (sink) => {
      await sink(pattern(PART));
      relay.freeze();
      await sink(pattern(PART));
    });
    const error = await errorOf(writing);
    expect(error).toBeInstanceOf(DestinationError);
    expect([error!.fault, error!.message]).toEqual([
      'unavailable',
      expect.stringContaining('writing file failed: no answer'),
    ]);
    relay.cut();
    expect(await errorOf(listed(through))).toMatchObject({ fault: 'unavailable' });
    relay.mend();
    expect(await listed(patient)).toEqual([['file', 6]]);
    await patient.sweep();
    expect(await uploads()).toEqual([]);
  },
);

test.skipIf(server === null)(
  'a server that stops in the middle of an answer counts as unavailable in the end',
  async () => {
    const to = (options: S3Options) => open(server!, options, relay.url, server!.bucket, 'made/up-half');
    const through = to({ attempts: 1, idleMs: 300 });
    await to({}).put('big', (sink) => sink(pattern(PART)));
    const reading = (async () => {
      for await (const _ of (await through.get('big'))!) relay.freeze();
    })();
    expect(await errorOf(reading)).toMatchObject({ fault: 'unavailable' });
    relay.mend();
  },
);

test.skipIf(server === null)('distinguishes a missing bucket from an address where nothing listens', async () => {
  const gone = open(server!, {}, server!.url, 'no-such-bucket');
  for (const work of [() => listed(gone), () => put('x', 'x', gone), () => gone.get('x'), () => gone.sweep()])
    expect(await errorOf(work())).toMatchObject({
      fault: 'refused',
      message: expect.stringContaining('there is no such bucket'),
    });
  const nobody = open(server!, { attempts: 1 }, 'http://127.0.0.1:9');
  expect(await errorOf(listed(nobody))).toMatchObject({
    fault: 'unavailable',
    message: expect.stringContaining('ECONNREFUSED'),
  });
});

test.skipIf(strict === null)('rejects wrong keys at once, and no message contains the secret', async () => {
  const to = open(strict!);
  const error = await errorOf(listed(to));
  expect(error).toMatchObject({
    fault: 'refused',
    message: `${to.name}: listing its files failed: the storage does not know the access key`,
    remedy: expect.stringContaining('AWS_ACCESS_KEY_ID'),
  });
  const all = inspect(error, { depth: 20 });
  for (const secret of [strict!.settings.credentials!.secretAccessKey, 'authorization', 'x-amz-'])
    expect(all).not.toContain(secret);
});

test('does not read a part of a file again when only its end mark is lost', async () => {
  // Chunked, as some storage sends it: the chunk that marks the end never arrives.
  const bytes = 'one two three';
  const asked: (string | undefined)[] = [];
  const storage = createServer((request, response) => {
    asked.push(request.headers.range);
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
    const isRange = from !== undefined && Number(from) <= Number(to);
    response.writeHead(isRange ? 206 : 200, { etag: '"1"' });
    response.write(isRange ? bytes.slice(Number(from), Number(to) + 1) : bytes, () => {
      if (asked.length === 1) setImmediate(() => request.socket.destroy());
      else response.end();
    });
  });
  await new Promise<void>((resolve) => storage.listen(0, '127.0.0.1', resolve));
  const { port } = storage.address() as AddressInfo;
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b', sessionToken: null };
  const settings = { endpoint: `http://127.0.0.1:${port}`, region: 'us-east-1', pathStyle: true, credentials };
  destination = openS3({ kind: 's3', bucket: 'made-up', prefix: '' }, settings);
  try {
    expect(await get('file', { from: 4, to: 7 })).toBe('two');
    expect(asked).toEqual(['bytes=4-6']);
  } finally {
    storage.close();
  }
});
