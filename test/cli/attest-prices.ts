/** Attestations of price series: which changes are allowed, and that even a person who can write every table cannot hide a change. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { DAY, INTERVAL_MS, type PriceInterval } from '../../src/core/interval.ts';
import { readSeries } from '../../src/views/attestation/series-line.ts';
import { makeSeriesOf, type PreparedChunk, prepareChunks, storePrepared } from '../bench/prepared.ts';
import { runCommand } from '../support/cli.ts';
import { copyDatabase } from '../support/copy-database.ts';
import { createTestDatabase, type FilledDatabase, fillDatabase, type TestDatabase } from '../support/database.ts';
import { forge } from './forge.ts';

const FROM = Date.UTC(2021, 0, 1);
const AS_OF = Date.UTC(2024, 1, 1);

export function testAttestedPrices(intervals: readonly PriceInterval[]): void {
  describe.each(intervals)('a series of %s', (interval) => {
    const width = INTERVAL_MS[interval];
    const from = Math.ceil(FROM / width) * width;
    const span = { from, to: from + 120 * width };
    /** In the middle: the slots of which the tests change one. */
    const at = (n: number) => from + (60 + n) * width;
    const time = (n: number) => `'${new Date(at(n)).toISOString()}'::timestamptz`;
    const monthOf = (n: number) => new Date(at(n)).toISOString().slice(0, 7);
    const name = `btc-bitcoin usd ${interval}`;

    let filled: FilledDatabase;
    let database: TestDatabase;
    let folder: string;
    let file: string;
    let ids: number[];
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'attest-'));
      file = join(folder, 'a.jsonl');
      filled = await fillDatabase(fill);
    });
    afterAll(async () => {
      await filled?.drop();
      await rm(folder, { recursive: true });
    });
    beforeEach(async () => {
      database = await filled.copy({ max: 4 });
    });
    afterEach(() => database.drop());

    async function fill(first: TestDatabase): Promise<void> {
      database = first;
      ids = await makeSeriesOf(database.sql, ['btc-bitcoin', 'eth-ethereum'], interval, { from, to: AS_OF });
      await database.sql`insert into ops.origin (simulator) values ('made-up')`;
      for (const chunk of prepareChunks(ids, interval, span)) await storePrepared(database.sql, chunk, AS_OF);
      // Refreshes: several steps in one row of evidence.
      for (let n = 0; n < 5; n++) await store(ids[0]!, span.to + n * width);
      const attested = await runCommand(['attest', '--out', file], {
        env: { DATABASE_URL: database.url },
        // What a test stores later comes after the attestation.
        clock: { ...systemClock, now: () => AS_OF },
      });
      expect(attested).toMatchObject({ code: 0, err: '' });
    }

    type Report = {
      readonly findings: { subject: string; month: string | null; verdict: string }[];
      readonly counts: Readonly<Record<string, number>>;
    };
    async function compare(url = database.url): Promise<Report & { readonly code: number }> {
      const { code, out, err } = await runCommand(['verify', '--against', file, '--json'], {
        env: { DATABASE_URL: url },
      });
      expect(err).toBe('');
      return { code, ...(JSON.parse(out) as Report) };
    }
    const chunkOf = (id: number, start: number, slots: number): PreparedChunk =>
      prepareChunks([id], interval, { from: start, to: start + slots * width })[0]!;
    const store = (id: number, start: number, asOf = AS_OF) => storePrepared(database.sql, chunkOf(id, start, 1), asOf);
    /** Stores another answer, a day later, with other prices for these slots. */
    async function revise(id: number, start: number, slots: number): Promise<void> {
      const chunk = chunkOf(id, start, slots);
      const price = chunk.candles.close.map((close) => close! * 0.999);
      const candles = { ...chunk.candles, open: price, high: price, low: price, close: price };
      await storePrepared(database.sql, { ...chunk, candles }, AS_OF + DAY);
    }

    test('is in the attestation with its months, and equal until something changes', async () => {
      const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => line.startsWith('['));
      const attested = lines.map((line) => readSeries(JSON.parse(line))!);
      expect(attested.map(({ coinId, quote, interval: of }) => [coinId, quote, of])).toEqual([
        ['btc-bitcoin', 'usd', interval],
        ['eth-ethereum', 'usd', interval],
      ]);
      expect(attested.map(({ months }) => months.reduce((sum, { candles }) => sum + candles, 0))).toEqual([125, 120]);
      // No month in between lacks anything, so the file has no count of missing slots.
      const told = (JSON.parse(lines[0]!) as [...unknown[]])[4] as unknown[] | undefined;
      expect(told?.length ?? 0).toBeLessThanOrEqual(2);
      expect(attested[0]!.months.length).toBeGreaterThan(1);
      expect(await compare()).toMatchObject({ code: 0, findings: [], counts: { tampered: 0, grown: 0, revised: 0 } });
    });

    test('does not differ after growth, recorded revisions, a repair with new answers, and a copy to another database', async () => {
      await store(ids[1]!, span.to);
      await revise(ids[1]!, at(0), 3);
      await database.sql`select ops.uncover(${ids[0]!}, ${at(0)}::timestamptz, ${at(4)}::timestamptz)`;
      const mended = await compare();
      expect(mended).toMatchObject({ code: 0, counts: { tampered: 0 } });
      expect(mended.findings).toContainEqual(
        expect.objectContaining({ subject: `eth-ethereum usd ${interval}`, month: monthOf(0), verdict: 'revised' }),
      );
      await storePrepared(database.sql, chunkOf(ids[0]!, at(0), 4), AS_OF + DAY);
      expect(await compare()).toMatchObject({ code: 0, counts: { tampered: 0 } });
      const other = await createTestDatabase({ max: 1 });
      try {
        await copyDatabase(database, other);
        expect(await compare(other.url)).toMatchObject({ code: 0, counts: { tampered: 0 } });
      } finally {
        await other.drop();
      }
    });

    const there = `series_id = :id and time = ${time(0)}`;
    test.each<[string, string, boolean]>([
      ['one bit of a price', `update market.price set price = price * (1 + 3e-16) where ${there}`, true],
      ['a volume', `update market.price set volume_24h = volume_24h + 1 where ${there}`, true],
      ['a market cap that was there', `update market.price set market_cap = null where ${there}`, true],
      ['a row deleted', `delete from market.price where ${there}`, true],
      ['a row that went to another series', `update market.price set series_id = -1 where ${there}`, true],
      ['a price of zero', `update market.price set price = 0 where ${there}`, true],
      [
        'two rows swapped',
        `update market.price c set price = o.price from market.price o where c.series_id = :id and o.series_id = :id
        and c.time in (${time(0)}, ${time(1)}) and o.time in (${time(0)}, ${time(1)}) and c.time <> o.time`,
        true,
      ],
      [
        'the rows of another series',
        `update market.price c set price = o.price, volume_24h = o.volume_24h, market_cap = o.market_cap from market.price o
        where c.series_id = :id and o.series_id = :other and c.time = o.time and c.time = ${time(0)}`,
        true,
      ],
      [
        'a false revision',
        `insert into market.revision (series_id, open_time, seen_at, known_at, step, open) values (:id, ${time(0)}, now(), now(), 1, 1)`,
        false,
      ],
      [
        'who told when',
        `update market.evidence set known_at = known_at - interval '1 day' where series_id = :id and number = 1`,
        false,
      ],
    ])('reveals a change by a person who can write every table: %s', async (_, change, isOfMonth) => {
      const ofSeries = change.replaceAll(':id', `${ids[0]!}`).replaceAll(':other', `${ids[1]!}`);
      await forge(database, ids[0]!, ofSeries, interval);
      const { code, findings } = await compare();
      expect(code).toBe(1);
      expect(findings.every(({ subject }) => subject === name)).toBe(true);
      // Two neighbouring slots may lie in two months.
      const months = new Set(
        findings.flatMap(({ month, verdict }) => (verdict === 'tampered' && month ? [month] : [])),
      );
      expect([...months].filter((month) => month !== monthOf(0) && month !== monthOf(1))).toEqual([]);
      expect(findings).toContainEqual(
        expect.objectContaining({ month: isOfMonth ? monthOf(0) : null, verdict: 'tampered' }),
      );
    });

    test('reveals coverage without evidence, and the removal of the series', async () => {
      await database.sql`update market.series set covered = covered + ${[{ from: from - 50 * width, to: from }]}::tstzmultirange where id = ${ids[0]!}`;
      expect(await compare()).toMatchObject({ code: 1 });
      await database.sql`delete from market.price where series_id = ${ids[1]!}`;
      await database.sql`delete from market.series where id = ${ids[1]!}`;
      expect((await compare()).findings).toContainEqual(
        expect.objectContaining({ subject: `eth-ethereum usd ${interval}`, month: null, verdict: 'tampered' }),
      );
    });
  });
}
