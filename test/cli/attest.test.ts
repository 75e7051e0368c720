/** Attestations: their contents, their signatures, and that even a person who can write every table cannot hide a change. */
import { execFile } from 'node:child_process';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openAttestation } from '../../src/background/attestation/attestation-file.ts';
import { Interrupted } from '../../src/cli/shell/exit.ts';
import { systemClock } from '../../src/clock.ts';
import { formatBytes } from '../../src/core/format.ts';
import { DAY, INTERVAL_MS } from '../../src/core/interval.ts';
import { DEFAULT_RETENTION } from '../../src/core/settings/retention-settings.ts';
import { recordCoins } from '../../src/store/snapshot/coin.ts';
import { ensurePartitions } from '../../src/store/upkeep/partition.ts';
import { continueHistories, recordRenames } from '../../src/store/upkeep/rename.ts';
import { removeOld } from '../../src/store/upkeep/retention.ts';
import { readSeries, writeSeries } from '../../src/views/attestation/series-line.ts';
import { makeSeriesOf, type PreparedChunk, prepareChunks, storePrepared } from '../bench/prepared.ts';
import { ensureBuilt } from '../support/build.ts';
import { runCommand } from '../support/cli.ts';
import { createTestDatabase, type FilledDatabase, fillDatabase, type TestDatabase } from '../support/database.ts';
import { until } from '../support/until.ts';
import { forge } from './forge.ts';

const FROM = Date.UTC(2021, 0, 1);
const TO = Date.UTC(2023, 11, 20);
const AS_OF = Date.UTC(2024, 1, 1);

let filled: FilledDatabase;
let database: TestDatabase;
let folder: string;
let file: string;
let ids: number[];
beforeAll(async () => {
  filled = await fillDatabase(async (first) => {
    database = first;
    const span = { from: FROM, to: TO };
    await ensurePartitions(database.sql, '24h', { from: FROM, to: AS_OF });
    ids = await makeSeriesOf(database.sql, ['btc-bitcoin', 'eth-ethereum'], '24h', { from: FROM, to: AS_OF });
    await database.sql`insert into ops.origin (simulator) values ('made-up')`;
    for (const chunk of prepareChunks(ids, '24h', span)) await storePrepared(database.sql, chunk, AS_OF);
    // Daily refreshes: several steps in one row of evidence.
    for (let day = 0; day < 12; day++) await store(ids[0]!, TO + day * DAY);
  });
});
afterAll(() => filled?.drop());
beforeEach(async () => {
  database = await filled.copy({ max: 4 });
  folder = await mkdtemp(join(tmpdir(), 'attest-'));
  file = join(folder, 'a.jsonl');
});
afterEach(async () => {
  await database.drop();
  await rm(folder, { recursive: true });
});

const chandler = (...argv: string[]) => runCommand(argv, { env: { DATABASE_URL: database.url } });
const KEEPING = { CHANDLER_KEEP_CANDLES: '700d' };
/** The time at which the last of these answers was stored. What a test stores later comes after it. */
const THEN = { ...systemClock, now: () => AS_OF };
const attest = (...argv: string[]) =>
  runCommand(['attest', '--out', file, ...argv], { env: { DATABASE_URL: database.url }, clock: THEN });

type Report = {
  readonly findings: { subject: string; month: string | null; verdict: string }[];
  counts: Record<string, number>;
};
async function compare(...argv: string[]): Promise<Report & { readonly code: number }> {
  return compareWith({}, ...argv);
}
async function compareWith(env: NodeJS.ProcessEnv, ...argv: string[]): Promise<Report & { readonly code: number }> {
  const verify = ['verify', '--against', file, '--json', ...argv];
  const { code, out, err } = await runCommand(verify, { env: { DATABASE_URL: database.url, ...env } });
  expect(err).toBe('');
  return { code, ...(JSON.parse(out) as Report) };
}

function chunkOf(id: number, at: number, days = 1): PreparedChunk {
  const [chunk] = prepareChunks([id], '24h', { from: at, to: at + days * DAY });
  return chunk!;
}
const store = (id: number, at: number, asOf = AS_OF) => storePrepared(database.sql, chunkOf(id, at), asOf);

/** Stores another answer, a day later, with other prices for these days. */
async function revise(id: number, at: number, days: number): Promise<void> {
  const chunk = chunkOf(id, at, days);
  const candles = { ...chunk.candles, close: chunk.candles.close.map((close) => close! * 0.999) };
  await storePrepared(database.sql, { ...chunk, candles }, AS_OF + DAY);
}

describe('attest', () => {
  test('writes the same file for the same state, in few bytes, with digests that anybody can compute from the candles', async () => {
    expect(await attest()).toMatchObject({ code: 0, err: '' });
    const first = (await readFile(file, 'utf8')).split('\n');
    expect(await attest()).toMatchObject({ code: 0, err: '' });
    const second = (await readFile(file, 'utf8')).split('\n');
    expect(second.slice(1)).toEqual(first.slice(1));
    expect(await readdir(folder)).toEqual(['a.jsonl']);
    const facts = first.slice(1, -2);
    const { root } = JSON.parse(first.at(-2)!) as { root: string };
    expect(
      createHash('sha256')
        .update(facts.map((line) => `${line}\n`).join(''))
        .digest('hex'),
    ).toBe(root);

    const series = facts.filter((line) => line.startsWith('['));
    expect(series.map((line) => JSON.parse(line)[0])).toEqual(['btc-bitcoin usd 24h', 'eth-ethereum usd 24h']);
    for (const line of series) expect((line.length + 1) / 3).toBeLessThanOrEqual(200);

    const january = chunkOf(ids[0]!, FROM, 31).candles;
    const records = january.openTime.map((at, i) => {
      const bytes = Buffer.alloc(56);
      bytes.writeBigInt64BE(BigInt(at / 1000));
      const c = january;
      for (const [n, of] of [c.open, c.high, c.low, c.close, c.volume, c.marketCap].entries())
        bytes.writeDoubleBE(of[i]!, 8 + 8 * n);
      return bytes;
    });
    const covered = Buffer.alloc(16);
    covered.writeBigInt64BE(BigInt(FROM / 1000), 0);
    covered.writeBigInt64BE(BigInt((FROM + 31 * DAY) / 1000), 8);
    const candles = createHash('sha256').update(Buffer.concat(records)).digest();
    const digest = createHash('sha256').update(candles).update(covered).digest();
    const digests = Buffer.from(JSON.parse(series[0]!)[3], 'base64');
    expect(digests.subarray(28, 34).toString('hex')).toBe(digest.subarray(0, 6).toString('hex'));
    expect(INTERVAL_MS['24h']).toBe(DAY);
  });

  test('writes at most 200 bytes for a series of one year', () => {
    const months = Array.from({ length: 12 }, (_, i) => {
      const [from, to] = [Date.UTC(2024, i), Date.UTC(2024, i + 1)];
      return { from, candles: (to - from) / DAY, slots: (to - from) / DAY, digest: Buffer.alloc(32, i) };
    });
    const digests = { link: Buffer.alloc(32), records: Buffer.alloc(32), months };
    const name = { coinId: 'some-coin-with-a-long-name', quote: 'usd', interval: '24h' } as const;
    const line = writeSeries({ ...name, ...digests, steps: 400 });
    expect(line.length).toBeLessThanOrEqual(200);
    expect(readSeries(JSON.parse(line))).toMatchObject({ ...name, steps: 400, months: { length: 12 } });
  });

  test('signs with Ed25519, and OpenSSL can verify the signature', async () => {
    const run = promisify(execFile);
    const [key, pub] = [join(folder, 'key.pem'), join(folder, 'pub.pem')];
    await run('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', key]);
    await run('openssl', ['pkey', '-in', key, '-pubout', '-out', pub]);
    expect((await attest('--sign', key)).code).toBe(0);
    expect((await compare('--key', pub)).code).toBe(0);

    const lines = (await readFile(file, 'utf8')).trimEnd().split('\n');
    const { root, signature } = JSON.parse(lines.at(-1)!);
    await writeFile(join(folder, 'text'), `${lines[0]}\n${root}\n`);
    await writeFile(join(folder, 'signature'), Buffer.from(signature, 'base64'));
    const check = [
      'pkeyutl',
      '-verify',
      '-pubin',
      '-inkey',
      pub,
      '-rawin',
      '-in',
      join(folder, 'text'),
      '-sigfile',
      join(folder, 'signature'),
    ];
    expect((await run('openssl', check)).stdout).toContain('Verified Successfully');

    // Another time in the head, or another key.
    await writeFile(file, [lines[0]!.replace(/"at":"\d{4}/, '"at":"1999'), ...lines.slice(1), ''].join('\n'));
    const changed = await chandler('verify', '--against', file, '--key', pub);
    expect([changed.code, changed.err]).toEqual([1, expect.stringContaining('that the given key did not make')]);
  });

  test('says what is wrong with a key and ends with 2', async () => {
    const path = join(folder, 'key.pem');
    expect(await attest('--sign', path)).toMatchObject({ code: 2, err: expect.stringContaining('cannot be read') });
    const pem = { type: 'pkcs8', format: 'pem' } as const;
    const encrypted = generateKeyPairSync('ed25519').privateKey.export({
      ...pem,
      cipher: 'aes-256-cbc',
      passphrase: 'x',
    });
    await writeFile(path, encrypted);
    expect(await attest('--sign', path)).toMatchObject({ code: 2, err: expect.stringContaining('is encrypted') });
    await writeFile(path, generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export(pem));
    expect(await attest('--sign', path)).toMatchObject({ code: 2, err: expect.stringContaining('but one for ec') });
    await writeFile(path, 'no key');
    expect(await attest('--sign', path)).toMatchObject({ code: 2, err: expect.stringContaining('openssl genpkey') });
    // The advice never names the given file, which may hold something else.
    expect((await attest('--sign', path)).err).not.toContain(`-out ${path}`);
    // A new key checks no signature of an old one.
    const { code, err } = await chandler('verify', '--against', file, '--key', path);
    expect([code, err]).toEqual([2, expect.stringContaining('get it from whoever signed')]);
    expect(err).not.toContain('genpkey');
    expect(await chandler('attest', '--out', join(folder, 'none', 'a'))).toMatchObject({ code: 2 });
    expect(await readdir(folder)).toEqual(['key.pem']);
  });

  test('leaves no incomplete file when it is interrupted: exit code 130', async () => {
    const interruption = new AbortController();
    const waiting = async () =>
      (await database.sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
        .length > 0;
    await database.sql.begin(async (tx) => {
      await tx`lock table market.candle in access exclusive mode`;
      const env = { DATABASE_URL: database.url };
      const attesting = runCommand(['attest', '--out', file], { env, signal: interruption.signal });
      await until(waiting);
      interruption.abort(new Interrupted('interrupted by SIGINT'));
      expect(await attesting).toMatchObject({ code: 130, err: 'error: interrupted by SIGINT\n' });
      expect(await readdir(folder)).toEqual([]);
    });
  });

  test('fails and keeps the older file when the disk has no room for the end of the last line', async () => {
    const key = join(folder, 'key.pem');
    await writeFile(key, generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }));
    // Grows the file until a limit of whole kilobytes lies inside its last line: there the last write is a short one.
    let text = '';
    const blocks = () => Math.floor(text.length / 1_024);
    for (let day = 0; text === '' || blocks() * 1_024 <= text.lastIndexOf('\n', text.length - 2) + 1; day++) {
      const at = new Date(Date.UTC(2015, day, 5));
      await database.sql`insert into market.global_history (at, updated_at, answer) values (${at}, ${at}, '{}')`;
      expect((await chandler('attest', '--out', file, '--sign', key)).code).toBe(0);
      text = await readFile(file, 'utf8');
    }
    const program = join(await ensureBuilt(), 'main.js');
    const script = `ulimit -f ${blocks()} && exec "${process.execPath}" "${program}" attest --out "${file}" --sign "${key}"`;
    const limited = promisify(execFile)('bash', ['-c', script], {
      env: { PATH: process.env.PATH, DATABASE_URL: database.url },
    });
    await expect(limited).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('EFBIG') });
    expect(await readFile(file, 'utf8')).toBe(text);
    expect((await readdir(folder)).sort()).toEqual(['a.jsonl', 'key.pem']);
  });

  test('never overwrites another file, and replaces a signed attestation only by a signed one', async () => {
    const path = join(folder, 'key.pem');
    const key = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    await writeFile(path, key);
    expect(await chandler('attest', '--out', path, '--sign', path)).toMatchObject({
      code: 2,
      err: expect.stringContaining('is not an attestation'),
    });
    expect(await readFile(path, 'utf8')).toBe(key);
    expect((await attest()).code).toBe(0);
    expect((await attest('--sign', path)).code).toBe(0);
    const signed = await readFile(file, 'utf8');
    expect(await attest()).toMatchObject({ code: 2, err: expect.stringContaining('add --sign') });
    expect(await readFile(file, 'utf8')).toBe(signed);
    expect((await attest('--sign', path)).code).toBe(0);
    expect(await chandler('attest', '--out', folder)).toMatchObject({
      code: 2,
      err: expect.stringContaining('it is a folder'),
    });
    // The size that it prints is the size of the file.
    await writeFile(file, '');
    expect((await attest()).out).toContain(formatBytes((await readFile(file)).length));
    expect(await chandler('verify', '--against', file, '--key', path)).toMatchObject({
      code: 2,
      err: expect.stringContaining('is a private one'),
    });
  });
});

describe('verify --since', () => {
  test('reads only series with an answer since then', async () => {
    const eth = ids[1]!;
    await database.sql`update market.series set created_at = '2024-01-01', answered_at = '2024-01-01' where id = ${eth}`;
    await database.sql`update market.evidence set known_at = '2024-01-01' where series_id = ${eth}`;
    const seriesSince = async (time: string) => {
      const { out } = await chandler('verify', '--since', time, '--json');
      return (JSON.parse(out) as { coinId: string }[]).map(({ coinId }) => coinId);
    };
    expect(await seriesSince('-1h')).toEqual(['btc-bitcoin']);
    expect(await seriesSince('2023-12-31')).toEqual(['btc-bitcoin', 'eth-ethereum']);
  });

  test('says when no series has such a new answer, and refuses a time in the future', async () => {
    const { code, out } = await chandler('verify', '--since', 'now');
    expect(code).toBe(0);
    expect(out).toContain('no such series has a new answer since');
    expect(await chandler('verify', '--since', '2999-01-01')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--since 2999-01-01 lies in the future'),
    });
  });
});

describe('verify', () => {
  test('prints commands for twenty stretches, and says how many more there are', async () => {
    // Each answer has its own row of evidence: none continues the one before.
    for (let day = 62; day > 12; day -= 2) await store(ids[0]!, TO + day * DAY, AS_OF + 62 * DAY);
    await database.sql`update market.candle set close = close * 0.999 where series_id = ${ids[0]!} and open_time > ${TO + 12 * DAY}`;
    const { code, out } = await chandler('verify');
    expect(code).toBe(1);
    expect(out.match(/ops\.uncover/g)).toHaveLength(20);
    expect(out).toContain('and in 5 more of its stretches (--json lists all)');
  });

  test('prints one command for each answered or wanted stretch, and none for the time between or beside them', async () => {
    const { sql } = database;
    const strangers = [Date.UTC(2023, 11, 25), Date.UTC(2024, 0, 20)];
    await sql`update market.series set wanted = covered where id = ${ids[1]!}`;
    await sql`insert into market.candle (series_id, interval, open_time, open, high, low, close)
      select ${ids[1]!}, '24h', t, 1, 1, 1, 1 from unnest(${strangers}::timestamptz[]) t`;
    const commands = async () => {
      const { code, out } = await chandler('verify');
      return {
        code,
        commands: out.match(/chandler (sql|backfill) .*/g),
      };
    };
    const uncover = `chandler sql "select ops.uncover(${ids[1]!}, '2023-12-25T00:00:00.000Z', '2024-01-21T00:00:00.000Z')"`;
    expect(await commands()).toEqual({ code: 1, commands: [uncover] });

    const answered = [FROM + 10 * DAY, FROM + 700 * DAY];
    await sql`update market.candle set close = close * 0.999 where series_id = ${ids[1]!} and open_time = any(${answered}::timestamptz[])`;
    const backfills = ['2021-01-11', '2022-12-02'].map(
      (day) =>
        `chandler backfill eth-ethereum --interval 24h --quote usd --start ${day}T00:00:00.000Z --end ${day.slice(0, 8)}${day.endsWith('11') ? '12' : '03'}T00:00:00.000Z`,
    );
    expect((await commands()).commands?.filter((command) => command.includes('backfill'))).toEqual(backfills);
  });

  test('says how to remove rows that no command can name, and how to repair coverage in the future', async () => {
    const { sql } = database;
    await sql.unsafe(
      `create table market.candle_24h_after partition of market.candle_24h for values from ('9000-01-01Z') to (maxvalue)`,
    );
    await sql`insert into market.candle (series_id, interval, open_time, open, high, low, close)
      values (${ids[1]!}, '24h', 'infinity', 1, 1, 1, 1)`;
    await sql`update market.series set covered = covered + '{[2024-01-20Z,280000-01-01Z)}' where id = ${ids[1]!}`;
    const { code, out } = await chandler('verify');
    expect(code).toBe(1);
    const statements = Array.from(out.matchAll(/chandler sql "(.*)"/g), ([, statement]) => statement!);
    expect(statements).toEqual([
      expect.stringMatching(/^delete from market.candle where series_id = /),
      `select ops.uncover(${ids[1]!}, '2024-01-20T00:00:00.000Z', 'infinity')`,
    ]);
    // The future cannot be requested yet.
    expect(out).toMatch(/backfill eth-ethereum .* --start 2024-01-20T00:00:00.000Z --end 2024-02-01T00:00:00.000Z/);
    const json = JSON.parse((await chandler('verify', '--json')).out) as { coinId: string; commands: string[] }[];
    expect(
      json.find(({ coinId }) => coinId === 'eth-ethereum')!.commands.filter((command) => command.includes(' sql ')),
    ).toEqual(statements.map((statement) => `chandler sql "${statement}"`));
    for (const statement of statements) await sql.unsafe(statement);
    expect(await chandler('verify')).toMatchObject({ code: 0 });
  });
});

describe('verify, a series without a name', () => {
  test.each(['quote', 'interval'])('names it when its %s is null, and compares all others', async (column) => {
    await database.sql.unsafe(`alter table market.series alter ${column} drop not null;
      update market.series set ${column} = null where id = ${ids[1]!};
      update market.candle set close = close * 2 where series_id = ${ids[0]!} and open_time = '2022-05-10Z'`);
    const { code, out, err } = await chandler('verify');
    expect([code, err]).toEqual([1, '']);
    expect(out).toContain(`a column of market.series that is never null is null: ${column}`);
    expect(out).toContain('2022-05-10 00:00Z to 2022-05-11 00:00Z: the stored candle differs from the answer');
    // Its candles may be right.
    expect(out).not.toContain('delete from market.candle');
  });
});

describe('verify, outside the series', () => {
  test('prints the statements that end a difference, and they do', async () => {
    const { sql } = database;
    await sql`insert into market.calendar_coverage (coin_id, quote, period, spans) values ('eth-ethereum', 'usd', 'week', '{[2021-03-01Z,2021-03-08Z)}')`;
    const { code, out } = await chandler('verify');
    expect(code).toBe(1);
    expect(out).toContain('market.calendar_candle: the week of 2021-03-01T00:00:00.000Z of eth-ethereum in usd');
    const statements = Array.from(out.matchAll(/chandler sql "(.*)"/g), ([, statement]) => statement!);
    expect(statements).toContain(
      "delete from market.calendar_coverage where coin_id = 'eth-ethereum' and quote = 'usd'",
    );
    const json = JSON.parse((await chandler('verify', '--json')).out) as {
      seriesId: number | null;
      commands: string[];
    }[];
    expect(json.find(({ seriesId }) => seriesId === null)!.commands).toEqual(
      statements.map((statement) => `chandler sql "${statement}"`),
    );
    for (const statement of statements) await sql.unsafe(statement);
    expect((await chandler('verify')).code).toBe(0);
  });
});

describe('verify --against', () => {
  beforeEach(async () => {
    expect(await attest()).toMatchObject({ code: 0, err: '' });
  });

  test('finds no difference when nothing changed, after growth and recorded revisions, and after a repair', async () => {
    expect(await compare()).toMatchObject({ code: 0, counts: { tampered: 0, grown: 0, revised: 0 }, findings: [] });
    for (let day = 12; day < 15; day++) await store(ids[0]!, TO + day * DAY, AS_OF + DAY);
    await store(ids[1]!, TO, AS_OF + DAY);
    await revise(ids[1]!, Date.UTC(2022, 4, 10), 3);
    const grown = await compare();
    expect(grown).toMatchObject({ code: 0, counts: { tampered: 0, revised: 1 } });
    expect(grown.counts.grown).toBeGreaterThan(0);
    expect(grown.findings).toEqual([
      expect.objectContaining({ subject: 'eth-ethereum usd 24h', month: '2022-05', verdict: 'revised' }),
    ]);
    await database.sql`select ops.uncover(${ids[0]!}, '2021-03-05Z', '2021-03-09Z')`;
    const mended = await compare();
    expect(mended).toMatchObject({ code: 0, counts: { tampered: 0 } });
    // The answer that arrives afterwards may have other values.
    await revise(ids[0]!, Date.UTC(2021, 2, 5), 4);
    expect(await compare()).toMatchObject({ code: 0, counts: { tampered: 0 } });
  });

  /** Used only where candles are kept for a limited time. Another person may write the same step of evidence. */
  async function removeOldCandles() {
    const keep = { ...DEFAULT_RETENTION, candles: { ...DEFAULT_RETENTION.candles, '24h': 700 * DAY } };
    return removeOld(database, { keep, now: AS_OF });
  }

  test('reports what retention removed, but as a difference only when candles of that age are kept', async () => {
    expect((await removeOldCandles())?.partitions).toEqual(['candle_24h_2021']);
    expect(await compareWith(KEEPING)).toMatchObject({ code: 0, counts: { removed: 24, tampered: 0 } });
    expect(await compare()).toMatchObject({ code: 1, counts: { removed: 0, tampered: 24 } });
  });

  test('names impossible rows where retention had removed everything', async () => {
    await removeOldCandles();
    await ensurePartitions(database.sql, '24h', { from: FROM, to: FROM + DAY });
    await database.sql`insert into market.candle (series_id, interval, open_time, open, high, low, close) values
      (${ids[1]!}, '24h', '2021-05-01Z', -1, 1, -1, 1), (${ids[1]!}, '24h', '2021-05-02 06:00Z', 1, 1, 1, 1), (${ids[1]!}, '24h', '2021-05-03Z', 1, 1, 1, 1)`;
    const { code, out } = await chandler('verify');
    expect(code).toBe(1);
    expect(out).toContain('2021-05-01 00:00Z to 2021-05-02 00:00Z: 1 candle with impossible values');
    expect(out).toContain('2021-05-02 00:00Z to 2021-05-03 00:00Z: 1 candle off the 24h grid');
    expect(out).toContain('1 candle that retention has not removed yet');
    for (const [, statement] of out.matchAll(/chandler sql "(.*)"/g)) await database.sql.unsafe(statement!);
    expect(await chandler('verify')).toMatchObject({
      code: 0,
      out: expect.stringContaining('1 candle that retention has not removed yet'),
    });
  });

  test('finds no difference after retention of small answers that share a row of evidence, before and after another attestation', async () => {
    const id = await refreshedAcrossNewYear();
    // In the middle of the row: its later steps come after the attestation.
    await attest();
    for (let day = 40; day < 50; day++) await store(id, Date.UTC(2021, 11, 12) + day * DAY);
    await removeOldCandles();
    expect(await compareWith(KEEPING)).toMatchObject({ code: 0, counts: { tampered: 0 } });
    await attest();
    expect(await compareWith(KEEPING)).toMatchObject({ code: 0, counts: { tampered: 0, removed: 0 } });
    await database.sql`update market.candle set close = close * 2 where series_id = ${id} and open_time = '2022-01-10Z'`;
    expect((await compareWith(KEEPING)).findings).toContainEqual(
      expect.objectContaining({ subject: 'ltc-litecoin usd 24h', month: '2022-01', verdict: 'tampered' }),
    );
  });

  /** A third series, with 40 answers of one day each. */
  async function refreshedAcrossNewYear(): Promise<number> {
    const [id] = await makeSeriesOf(database.sql, ['ltc-litecoin'], '24h', { from: Date.UTC(2021, 11, 12), to: AS_OF });
    for (let day = 0; day < 40; day++) await store(id!, Date.UTC(2021, 11, 12) + day * DAY);
    const [row] = await database.sql<
      { rows: number }[]
    >`select count(*) as rows from market.evidence where series_id = ${id!}`;
    expect(row!.rows).toBe(1);
    return id!;
  }

  const inMay = `series_id = :id and open_time = '2022-05-10Z'`;
  test.each<[string, string, string | null]>([
    ['one bit of a price', `update market.candle set close = close * (1 + 3e-16) where ${inMay}`, '2022-05'],
    ['a row deleted', `delete from market.candle where ${inMay}`, '2022-05'],
    [
      'an empty slot where a candle was',
      `update market.candle set open_time = '2022-06-10Z', series_id = -1 where ${inMay}`,
      '2022-05',
    ],
    [
      'a false revision',
      `insert into market.revision (series_id, open_time, seen_at, known_at, step, open) values (:id, '2022-05-10Z', now(), now(), 1, 1)`,
      null,
    ],
    [
      'two rows swapped',
      `update market.candle c set close = o.close from market.candle o where c.series_id = :id and o.series_id = :id
        and c.open_time in ('2022-05-10Z', '2022-05-11Z') and o.open_time in ('2022-05-10Z', '2022-05-11Z') and c.open_time <> o.open_time`,
      '2022-05',
    ],
    [
      'who told when',
      `update market.evidence set known_at = known_at - interval '1 day' where series_id = :id and number = 2`,
      null,
    ],
    [
      'which answer told it',
      `update market.evidence set as_of = as_of - interval '400 days', fetch_id = null, body_sha256 = null where series_id = :id;
        delete from ops.fetch`,
      null,
    ],
  ])('reveals a change by a person who can write every table: %s', async (_, change, month) => {
    await forge(database, ids[0]!, change.replaceAll(':id', String(ids[0])));
    const { code, findings } = await compare();
    expect(code).toBe(1);
    expect(findings.every(({ subject }) => subject === 'btc-bitcoin usd 24h')).toBe(true);
    expect(findings).toContainEqual(expect.objectContaining({ month, verdict: 'tampered' }));
    // No other month differs.
    expect(new Set(findings.map((found) => found.month).filter((at) => at !== null))).toEqual(
      new Set(month === null ? [] : [month]),
    );
  });

  test('reveals that the empty flag of a revision was changed', async () => {
    await revise(ids[0]!, Date.UTC(2022, 4, 10), 3);
    await attest();
    await database.sql`update market.revision set was_empty = true where series_id = ${ids[0]!}`;
    expect((await compare()).findings).toContainEqual(
      expect.objectContaining({ subject: 'btc-bitcoin usd 24h', month: null, verdict: 'tampered' }),
    );
    expect((await chandler('verify')).code).toBe(1);
  });

  test('reports a change of id, but does not believe one that only the evidence has', async () => {
    await database.sql.unsafe(`
      insert into market.coin select (c).* from (select jsonb_populate_record(c, '{"id": "new-bitcoin"}') as c from market.coin c where id = 'btc-bitcoin') n;
      update market.series set coin_id = 'new-bitcoin', steps = steps + 1, link = ops.add_evidence(id, 'renamed', '{}', now(), now(), 0, 0, 0,
        why => 'btc-bitcoin new-bitcoin') where coin_id = 'btc-bitcoin'`);
    const name = { subject: 'btc-bitcoin usd 24h', month: null };
    const forged = await compare();
    expect(forged).toMatchObject({ code: 1, counts: { tampered: 1 } });
    expect(forged.findings).toContainEqual(expect.objectContaining({ ...name, verdict: 'tampered' }));
    await database.sql`insert into market.coin_rename (old_id, new_id, renamed_at, seen_at, source) values ('btc-bitcoin', 'new-bitcoin', now(), now(), 'coins')`;
    const told = await compare();
    expect(told).toMatchObject({ code: 0, counts: { tampered: 0, renamed: 1 } });
    expect(told.findings).toContainEqual(expect.objectContaining({ ...name, verdict: 'renamed' }));
  });

  test.each([
    ['another coin that had it is given a third id', 'btc-bitcoin', 'other-bitcoin', 1],
    ['another coin is given it', 'eth-ethereum', 'btc-bitcoin', 2],
  ])('does not report an old id that is in use again as tampering: %s', async (_, oldId, newId, renamed) => {
    const { sql } = database;
    const seen = { name: 'x', symbol: 'X', rank: 1, is_new: false, is_active: true, type: 'coin' };
    const [first, second] = [Date.UTC(2025, 0, 1), Date.UTC(2025, 6, 1)];
    await recordCoins(
      sql,
      ['new-bitcoin', 'other-bitcoin'].map((id) => ({ ...seen, id })),
      first,
    );
    await recordRenames(sql, [{ oldId: 'btc-bitcoin', newId: 'new-bitcoin', at: first }], 'changelog');
    expect(await continueHistories(sql, first + DAY)).toBe(1);
    await recordRenames(sql, [{ oldId, newId, at: second }], 'changelog');
    await continueHistories(sql, second + DAY);
    const { code, counts, findings } = await compare();
    expect(findings.filter(({ verdict }) => verdict === 'tampered')).toEqual([]);
    expect([code, counts.renamed]).toEqual([0, renamed]);
    // An earlier change of the id does not explain it.
    await sql`update market.coin_rename set renamed_at = ${first}::timestamptz, seen_at = ${first}::timestamptz`;
    expect(await compare()).toMatchObject({ code: 1, counts: { tampered: 1 } });
  });

  test('accepts every later state for an attestation of an empty warehouse', async () => {
    const empty = await createTestDatabase({ max: 1 });
    try {
      const env = { DATABASE_URL: empty.url };
      const path = join(folder, 'empty.jsonl');
      expect(await runCommand(['attest', '--out', path], { env })).toMatchObject({ code: 0, err: '' });
      await empty.sql`insert into ops.origin (simulator) values ('made-up')`;
      expect(await runCommand(['verify', '--against', path], { env })).toMatchObject({ code: 0 });
    } finally {
      await empty.drop();
    }
  });

  describe('forged answers dated before the attestation, which has none of them, are revealed:', () => {
    const EARLIER = AS_OF - 100 * DAY;
    const told = (id: number) => storePrepared(database.sql, chunkOf(id, Date.UTC(2020, 11, 1), 20), EARLIER);

    test('for a whole series', async () => {
      const [id] = await makeSeriesOf(database.sql, ['eve-coin'], '24h', { from: FROM, to: AS_OF });
      await ensurePartitions(database.sql, '24h', { from: Date.UTC(2020, 0, 1), to: AS_OF });
      await told(id!);
      // Nothing in the database contradicts the forged series.
      expect((await chandler('verify')).code).toBe(0);
      const { code, findings } = await compare();
      expect(code).toBe(1);
      expect(findings.filter(({ verdict }) => verdict === 'tampered')).toEqual([
        {
          subject: 'eve-coin usd 24h',
          month: null,
          verdict: 'tampered',
          detail: expect.stringContaining(
            '1 step of its evidence from before 2024-01-24T00:00:00.000Z (the attestation does not have this series)',
          ),
        },
      ]);
    });

    test('as older candles of an existing series, and as a step that shares its row with an attested one', async () => {
      await ensurePartitions(database.sql, '24h', { from: Date.UTC(2020, 0, 1), to: AS_OF });
      await told(ids[1]!);
      // As after an answer, except for its time.
      await store(ids[0]!, TO + 12 * DAY);
      await database.sql`update market.evidence set known_at = known_at - interval '100 days' where series_id = ${ids[1]!} and number > 1`;
      await forge(
        database,
        ids[0]!,
        `update market.evidence set step_seconds[cardinality(step_seconds)] = -8640000 where series_id = ${ids[0]!} and cardinality(step_seconds) > 12`,
      );
      const { code, findings } = await compare();
      expect(code).toBe(1);
      for (const subject of ['btc-bitcoin usd 24h', 'eth-ethereum usd 24h'])
        expect(findings).toContainEqual(
          expect.objectContaining({
            subject,
            detail: expect.stringMatching(
              /^the attestation does not have 1 step of its evidence from before .* \(from step \d+ on\)/,
            ),
          }),
        );
    });
  });

  test('reveals coverage without evidence, and removed series', async () => {
    await database.sql`update market.series set covered = '{[2020-06-01Z,2024-06-01Z)}' where id = ${ids[0]!}`;
    expect(await compare()).toMatchObject({ code: 1 });
    await database.sql`delete from market.candle where series_id = ${ids[1]!}`;
    await database.sql`delete from market.series where id = ${ids[1]!}`;
    expect((await compare()).findings).toContainEqual(
      expect.objectContaining({ subject: 'eth-ethereum usd 24h', month: null, verdict: 'tampered' }),
    );
  });

  test('distinguishes a damaged, cut, empty, unsigned or missing file from a difference', async () => {
    const text = await readFile(file, 'utf8');
    const against = async (content: string, ...argv: string[]) => {
      await writeFile(file, content);
      return chandler('verify', '--against', file, ...argv);
    };
    expect(await against(text.replace(/"2021-01"/, '"2021-02"'))).toMatchObject({
      code: 1,
      err: expect.stringContaining('is damaged'),
    });
    expect(await against(text.slice(0, text.length / 2))).toMatchObject({
      code: 1,
      err: expect.stringContaining('is truncated'),
    });
    expect(await against('')).toMatchObject({ code: 1, err: expect.stringContaining('is empty') });
    expect(await against('{}\n')).toMatchObject({ code: 1, err: expect.stringContaining('is not an attestation') });
    await rm(file);
    expect(await chandler('verify', '--against', file)).toMatchObject({
      code: 2,
      err: expect.stringContaining('there is no such file or folder'),
    });
    expect(await chandler('verify', '--key', file)).toMatchObject({ code: 2 });
  });

  test('what can be read only once, or is no text, is refused: a pipe, a device, a large file without lines', async () => {
    const against = (what: string) => chandler('verify', '--against', what);
    await promisify(execFile)('mkfifo', [join(folder, 'pipe')]);
    for (const what of [join(folder, 'pipe'), '/dev/zero']) {
      expect(await against(what)).toMatchObject({
        code: 1,
        err: expect.stringContaining(`${what} is not a file but a pipe or a device`),
      });
      expect(await chandler('attest', '--out', what)).toMatchObject({
        code: 2,
        err: expect.stringContaining(`${what} exists, and is not a file`),
      });
    }
    await writeFile(file, '');
    await truncate(file, 2 ** 30);
    expect(await against(file)).toMatchObject({
      code: 1,
      err: expect.stringContaining('it has a line that is too long'),
    });
  });

  test('a file that changes between its check and the comparison proves nothing', async () => {
    const { facts } = await openAttestation(file, '--against', null);
    await writeFile(file, (await readFile(file, 'utf8')).replace('2021-01', '2021-02'));
    const readAll = async () => {
      for await (const _ of facts());
    };
    await expect(readAll()).rejects.toThrow('was changed while it was read');
  });

  test('an empty warehouse is told to hold nothing', async () => {
    const empty = await createTestDatabase({ max: 1 });
    try {
      expect(await runCommand(['verify', '--against', file], { env: { DATABASE_URL: empty.url } })).toMatchObject({
        code: 1,
        out: expect.stringContaining(
          'the warehouse: holds nothing from an upstream, but the attestation is of data of made-up',
        ),
      });
    } finally {
      await empty.drop();
    }
  });

  test.each([
    [
      'coverage until a year that no date of JavaScript has',
      `update market.series set covered = covered + '{[2023-06-01Z,290000-01-01Z)}' where id = :id`,
    ],
    [
      'a revision without a time',
      `insert into market.revision (series_id, open_time, seen_at, known_at, step, open) values (:id, 'infinity', now(), now(), 1, 1)`,
    ],
  ])('%s stops neither an attestation nor a comparison', async (_, damage) => {
    await database.sql.unsafe(damage.replaceAll(':id', `${ids[1]!}`));
    const { code, findings } = await compare();
    expect(code).toBe(1);
    expect(findings).toContainEqual(expect.objectContaining({ subject: 'eth-ethereum usd 24h', verdict: 'tampered' }));
    expect((await attest()).code).toBe(0);
    expect((await readFile(file)).length).toBeLessThan(5_000);
  });

  test.each([
    [
      'steps of fewer than no slots',
      `update market.evidence set step_seconds = '{0,0}', step_slots = '{400,-35}' where series_id = :id and number = 1`,
    ],
    [
      'steps at times that are none',
      `update market.evidence set known_at = '294276-12-31 23:59:59Z', step_seconds = '{0,2147483647}' where series_id = :id and number = 1;
      insert into market.revision (series_id, open_time, seen_at, known_at, step, open) values (:id, '2022-05-10Z', now(), now(), 2, 1)`,
    ],
    ...[
      ['series', 'covered', 'id'],
      ['evidence', 'slots', 'series_id'],
      ['evidence', 'digest', 'series_id'],
    ].map(([table, column, id]): [string, string] => [
      `nulls in market.${table}.${column}, whose constraint is gone,`,
      `alter table market.${table} alter ${column} drop not null; update market.${table} set ${column} = null where ${id} = :id`,
    ]),
  ])('%s stop neither verify nor a comparison: all other series are compared', async (_, damage) => {
    const other = `update market.candle set close = close * 2 where series_id = ${ids[0]!} and open_time = '2022-05-10Z'`;
    await database.sql.unsafe(`${damage.replaceAll(':id', `${ids[1]!}`)}; ${other}`);
    const { code, findings } = await compare();
    expect(code).toBe(1);
    expect(findings).toContainEqual(expect.objectContaining({ subject: 'eth-ethereum usd 24h', verdict: 'tampered' }));
    const inMay = { subject: 'btc-bitcoin usd 24h', month: '2022-05', verdict: 'tampered' };
    expect(findings).toContainEqual(expect.objectContaining(inMay));
    const { code: ofVerify, out, err } = await chandler('verify');
    expect([ofVerify, err]).toEqual([1, '']);
    expect(out).toMatch(/btc-bitcoin +24h usd .* DIFFERS/);
    expect(out).toMatch(/eth-ethereum +24h usd .* DIFFERS/);
    expect(out).toContain('2022-05-10 00:00Z to 2022-05-11 00:00Z: the stored candle differs from the answer');
  });

  describe('forged rows of histories older than the attestation, which has none of them', () => {
    const ago = (days: number, minutes = 0) => new Date(Date.now() - days * DAY + minutes * 60_000).toISOString();
    const rates = (...at: string[]) =>
      database.sql`insert into market.rate (currency, at, updated_at, price) select 'EUR', t, t, 1.1 from unnest(${at}::text[]::timestamptz[]) t`;
    const change = (at: string) =>
      database.sql`insert into market.coin_change (coin_id, seen_at, field, old_value, new_value) values ('btc-bitcoin', ${at}::text::timestamptz, 'name', 'A', 'B')`;
    const tamperedAt = async () =>
      (await compare()).findings.map(({ subject, month, verdict }) => [subject, month, verdict]);

    test.each<[string, string[]]>([
      ['nothing was there', []],
      ['some months were', [ago(70), ago(40), ago(40, 30)]],
      ['the rows of one hour were', [ago(40), ago(40, 30)]],
    ])('are revealed: %s', async (_, then) => {
      if (then.length > 0) await rates(...then);
      const again = { code: 0, counts: expect.objectContaining({ tampered: 0 }) };
      expect(await chandler('attest', '--out', file)).toMatchObject({ code: 0 });
      expect(await compare()).toMatchObject({ ...again, counts: expect.objectContaining({ grown: 0 }) });
      // This includes an answer whose server was a week late, from a cache.
      await rates(ago(0), ago(7.9));
      await change(ago(7.9));
      expect(await compare()).toMatchObject(again);
      await change(ago(400));
      expect(await tamperedAt()).toEqual([['market.coin_change', ago(400).slice(0, 7), 'tampered']]);
      await rates(ago(130), ago(20));
      expect(await tamperedAt()).toEqual([
        ['market.coin_change', ago(400).slice(0, 7), 'tampered'],
        ['market.rate', ago(130).slice(0, 7), 'tampered'],
        ['market.rate', ago(20).slice(0, 7), 'tampered'],
      ]);
    });
  });

  test('accepts a copy of every table in another database as the same warehouse', async () => {
    const other = await createTestDatabase({ max: 1 });
    try {
      await ensurePartitions(other.sql, '24h', { from: FROM, to: AS_OF });
      const tables = [
        'market.coin',
        'market.series',
        'market.candle',
        'market.revision',
        'market.evidence',
        'ops.origin',
      ];
      for (const table of tables) {
        const [rows] = await database.sql.unsafe<{ all: string }[]>(
          `select coalesce(json_agg(t), '[]')::text as all from ${table} t`,
        );
        await other.sql.unsafe(
          `insert into ${table} overriding system value select * from json_populate_recordset(null::${table}, $1::text::json)`,
          [rows!.all],
        );
      }
      const verified = await runCommand(['verify', '--against', file], { env: { DATABASE_URL: other.url } });
      expect(verified).toMatchObject({
        code: 0,
        out: expect.stringContaining('Nothing that was attested was tampered with'),
      });
    } finally {
      await other.drop();
    }
  });
});
