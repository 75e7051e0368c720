import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDatabase } from '../../../src/store/connection/connect.ts';
import { readDatabaseUrl } from '../../../src/store/connection/database-url.ts';
import { explainDatabaseError, StoreError } from '../../../src/store/connection/store-error.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { openChunkQueue } from '../../support/queues.ts';
import { SELF_SIGNED } from '../../support/self-signed.ts';
import { startTlsFront, type TlsFront } from '../../support/tls-front.ts';

let database: TestDatabase;
let front: TlsFront;
let folder: string;
let authority: string;
beforeAll(async () => {
  database = await createTestDatabase();
  front = await startTlsFront(database.url);
  folder = mkdtempSync(path.join(os.tmpdir(), 'chandler-tls-'));
  authority = path.join(folder, 'authority.pem');
  writeFileSync(authority, SELF_SIGNED.cert);
});
afterAll(async () => {
  await front?.stop();
  await database?.drop();
  rmSync(folder, { recursive: true, force: true });
});

const failure = (work: () => unknown) =>
  Promise.resolve()
    .then(work)
    .then(
      () => expect.unreachable('it should have failed'),
      (error: unknown) => {
        expect(error).toBeInstanceOf(StoreError);
        return (error as StoreError).message;
      },
    );

describe('readDatabaseUrl', () => {
  const base = 'postgres://me:hunter2@db.example:5433/warehouse';
  test.each([
    [
      'sslmode=on',
      /has sslmode="on", which is none that Chandler knows; write one of disable, require, verify-ca, verify-full$/,
    ],
    ['sslmode=verify-ful', /write one of .* \(did you mean verify-full\?\)$/],
    ['sslmode=', /has sslmode=""/],
    [
      'sslmode=prefer',
      /has sslmode="prefer", which leaves open whether the connection is encrypted; write one of disable, require/,
    ],
    [
      'sslmod=require',
      /has the parameter sslmod, which Chandler does not know \(did you mean sslmode\?\); there are sslmode, sslrootcert/,
    ],
    ['statement_timeout=5', /has the parameter statement_timeout, which .*; a setting of the server goes into options/],
    ['schema=public', /has the parameter schema, which Chandler does not know/],
    ['sslmode=require&sslmode=disable', /gives sslmode 2 times; give it once/],
    ['connect_timeout=soon', /has connect_timeout="soon"; it must be a whole number of seconds/],
    ['channel_binding=require', /has channel_binding="require", which Chandler cannot do; write sslmode=verify-full/],
    ['application_name=', /has an empty application_name/],
    ['sslmode=verify-ca&sslrootcert=/no/such.pem', /names a file as sslrootcert that cannot be read \(ENOENT\)/],
  ])('rejects ?%s in one sentence that names the parameter, without the password', async (query, sentence) => {
    const message = await failure(() => readDatabaseUrl(`${base}?${query}`));
    expect(message).toMatch(sentence);
    expect(message).toMatch(/^DATABASE_URL 'postgres:\/\/me:\*\*\*@db.example:5433\/warehouse\?/);
    expect(message).not.toMatch(/hunter2|\n/);
  });

  test('explains that a # in a password must be encoded', async () => {
    expect(await failure(() => readDatabaseUrl('postgres://me@db/x#y'))).toMatch(/has a #.*; write # as %23/);
  });

  test('decodes the parts that a driver needs', () => {
    const address = readDatabaseUrl(
      'postgres://m%40e:p%2Fw@[::1]/w%20h?application_name=x&options=-c%20geqo%3Doff&connect_timeout=3&channel_binding=prefer',
    );
    expect(address).toEqual({
      host: '::1',
      port: 5432,
      user: 'm@e',
      password: 'p/w',
      database: 'w h',
      ssl: false,
      applicationName: 'x',
      options: '-c geqo=off',
      connectTimeoutSeconds: 3,
    });
    expect(readDatabaseUrl('postgres://db/x')).toMatchObject({ user: undefined, password: undefined, ssl: false });
  });
});

test('passes on `options` and the application name, and keeps the settings of Chandler', async () => {
  const url = new URL(database.url);
  url.searchParams.set('options', '-c geqo=off -c search_path=market');
  url.searchParams.set('application_name', 'named by the address');
  const named = await openDatabase({ url: url.href, max: 1 });
  const [row] = await named.sql`
    select current_setting('geqo') as geqo, current_setting('search_path') as path, current_setting('TimeZone') as zone,
      current_setting('application_name') as name`;
  await named.close();
  expect(row).toEqual({ geqo: 'off', path: 'market', zone: 'UTC', name: 'named by the address' });
  // The queue sets its own search path, otherwise it would not find its tables.
  const queue = await openChunkQueue({ engine: { kind: 'postgres', url: url.href }, onError: () => undefined });
  expect(await queue.size()).toBe(0);
  await queue.close();
});

describe('TLS', () => {
  const reach = async (parameters: Record<string, string>) => {
    const url = front.urlWith(parameters);
    const before = front.encrypted();
    const secure = await openDatabase({ url, max: 1 });
    expect(await secure.sql`select 1 as one`).toEqual([{ one: 1 }]);
    await secure.close();
    const between = front.encrypted();
    expect(between).toBeGreaterThan(before);
    const queue = await openChunkQueue({ engine: { kind: 'postgres', url }, onError: () => undefined });
    expect(await queue.size()).toBe(0);
    await queue.close();
    expect(front.encrypted()).toBeGreaterThan(between);
  };

  test('require encrypts the connections of both drivers, whoever signed the certificate', () =>
    reach({ sslmode: 'require' }));
  test('verify-ca and verify-full accept a certificate that the named file vouches for', async () => {
    await reach({ sslmode: 'verify-ca', sslrootcert: authority });
    await reach({ sslmode: 'verify-full', sslrootcert: authority });
  });

  test('verify-full rejects an unknown signer, and a certificate of another host', async () => {
    const untrusted = await failure(() => openDatabase({ url: front.urlWith({ sslmode: 'verify-full' }), max: 1 }));
    expect(untrusted).toMatch(
      /^the certificate of Postgres at localhost:\d+ cannot be trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\), which sslmode=verify-full of DATABASE_URL does not allow; name the file/,
    );
    const other = new URL(front.urlWith({ sslmode: 'verify-full', sslrootcert: authority }));
    other.hostname = '127.0.0.1';
    expect(await failure(() => openDatabase({ url: other.href, max: 1 }))).toMatch(
      /is for another host, which sslmode=verify-full of DATABASE_URL does not allow; correct the host/,
    );
    other.searchParams.set('sslmode', 'verify-ca');
    const trusted = await openDatabase({ url: other.href, max: 1 });
    await trusted.close();
  });

  test('missing at the server gives an error that says so', async () => {
    const url = new URL(database.url);
    url.searchParams.set('sslmode', 'require');
    expect(await failure(() => openDatabase({ url: url.href, max: 1 }))).toMatch(
      /^Postgres at .*:\d+ offers no TLS, which sslmode=require of DATABASE_URL asks for; turn TLS on at the server, or write sslmode=disable/,
    );
  });

  test('required by the server gives an error that says so', () => {
    const said = Object.assign(
      new Error('no pg_hba.conf entry for host "10.0.0.1", user "me", database "x", no encryption'),
      {
        code: '28000',
      },
    );
    expect(explainDatabaseError(said, 'postgres://me@db/x')?.message).toBe(
      "Postgres at db:5432 lets user 'me' in only with TLS; add sslmode=require to DATABASE_URL, after a ?",
    );
  });
});
