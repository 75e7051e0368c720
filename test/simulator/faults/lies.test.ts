/** The faults that look like any other answer: what a client sees of each; each is told once. */
import { describe, expect, it } from 'vitest';
import { ohlcvParameters, ohlcvPath } from '../../../src/contract/interface/paths.ts';
import type { OhlcvQuery } from '../../../src/contract/record/market-data.ts';
import { readOhlcvRows, writeOhlcvRows } from '../../../src/contract/record/ohlcv.ts';
import { DAY } from '../../../src/core/interval.ts';
import { createSimulator } from '../../../src/simulate.ts';
import type { FaultName } from '../../../src/simulator/faults/fault-spec.ts';
import { frozenClock } from '../../service/conformance.ts';

const now = Date.UTC(2024, 5, 1, 12);
const today = Date.UTC(2024, 5, 1);

async function rowsOf(answer: Response) {
  const read = readOhlcvRows(await answer.json());
  if (!read.ok) throw new Error(read.problem);
  return read.rows;
}

const LIES = [
  'wrong-interval',
  'other-coin',
  'all-null',
  'all-zero',
  'constant',
  'scaled',
  'shifted-day',
  'thinned',
  'half',
  'bad-date',
  'bad-age',
  'no-date',
] as const satisfies readonly FaultName[];

describe('a lie', () => {
  const question = { from: today - 19 * DAY, to: today, interval: '24h', quote: 'usd', limit: 366 } as const;
  const addressOf = (coinId: string, query: Partial<Parameters<typeof ohlcvParameters>[0]> = {}) =>
    `http://x/v1${ohlcvPath(coinId)}?${new URLSearchParams(ohlcvParameters({ ...question, ...query }))}`;
  /** The made-up market, where the first answer about each candle is this lie. */
  const lying = (fault: FaultName, seed = 1) => {
    const simulator = createSimulator({
      market: 'made-up',
      clock: frozenClock(now),
      coins: 12,
      unlimited: true,
      faults: { seed, rates: { [fault]: 1 }, mostInARow: 99 },
      onError: (error) => {
        throw error;
      },
    });
    const get = (address: string) => simulator.fetch(new Request(address));
    const truth = (coinId: string, query: Partial<OhlcvQuery> = {}) =>
      simulator.data.ohlcv({ coinId, ...question, ...query });
    return { simulator, get, truth };
  };
  const VALUES = ['open', 'high', 'low', 'close', 'volume', 'marketCap'] as const;
  const valuesOf = (row: Partial<Record<(typeof VALUES)[number], unknown>>) => VALUES.map((name) => row[name]);

  it('of an interval has other rows of the same coin and time, with their own ends', async () => {
    const seen = new Set<number>();
    for (let seed = 0; seed < 20; seed++) {
      const { get } = lying('wrong-interval', seed);
      const read = await rowsOf(await get(addressOf('btc-bitcoin')));
      const [first, second] = read.filter((row) => row.ok);
      const width = second!.openTime - first!.openTime;
      expect([first!.openTime, first!.closeTime]).toEqual([question.from, first!.openTime + width - 1_000]);
      seen.add(width);
    }
    expect(seen.size).toBeGreaterThan(3);
    expect(seen).not.toContain(DAY);
  });

  it('of a coin has the rows of another coin', async () => {
    const { get, truth, simulator } = lying('other-coin');
    const text = await (await get(addressOf('btc-bitcoin'))).text();
    const others = (await simulator.data.coins()).map(({ id }) => id).filter((id) => id !== 'btc-bitcoin');
    const theirs = await Promise.all(others.map(async (id) => writeOhlcvRows((await truth(id))!)));
    expect(theirs).toContain(text);
    expect(text).not.toBe(writeOhlcvRows((await truth('btc-bitcoin'))!));
  });

  it.each([
    ['all-null', null],
    ['all-zero', 0],
  ] as const)('%s has the right rows without their values', async (fault, value) => {
    const { get, truth } = lying(fault);
    const read = await rowsOf(await get(addressOf('btc-bitcoin')));
    expect(read.map((row) => row.openTime)).toEqual((await truth('btc-bitcoin'))!.map((row) => row.openTime));
    for (const row of read) expect([row.ok, ...valuesOf(row as object)]).toEqual([true, ...VALUES.map(() => value)]);
  });

  it('of one value has in every row the values of the same candle', async () => {
    const { get, truth } = lying('constant');
    const read = await rowsOf(await get(addressOf('btc-bitcoin')));
    expect(read).toHaveLength(20);
    expect(new Set(read.map((row) => JSON.stringify(valuesOf(row as object)))).size).toBe(1);
    expect((await truth('btc-bitcoin'))!.map(valuesOf)).toContainEqual(valuesOf(read[0] as object));
  });

  it('of a scale has values a million times as large, or a thousandth', async () => {
    const factors = new Set<number>();
    for (let seed = 0; seed < 8; seed++) {
      const { get, truth } = lying('scaled', seed);
      const [read] = await rowsOf(await get(addressOf('btc-bitcoin')));
      const [row] = (await truth('btc-bitcoin'))!;
      const ratios = valuesOf(read as object).map((value, i) => Number(value) / Number(valuesOf(row!)[i]));
      for (const ratio of ratios.slice(1, 5)) expect(ratio / ratios[0]!).toBeCloseTo(1);
      factors.add(Number(ratios[0]!.toPrecision(3)));
    }
    expect([...factors].sort((a, b) => a - b)).toEqual([1e-3, 1e6]);
  });

  it('of a day has in each row the values of the day before or after', async () => {
    const shifts = new Set<number>();
    for (let seed = 0; seed < 8; seed++) {
      const { get, truth } = lying('shifted-day', seed);
      const span = { from: question.from - DAY, to: today - DAY };
      const read = await rowsOf(await get(addressOf('btc-bitcoin', { ...span, interval: '6h' })));
      const wide = { from: span.from - DAY, to: span.to + DAY, interval: '6h' } as const;
      const byTime = new Map((await truth('btc-bitcoin', wide))!.map((row) => [row.openTime, valuesOf(row)]));
      const shift = [-DAY, DAY].find((ms) =>
        read.every((row) => JSON.stringify(byTime.get(row.openTime! + ms)) === JSON.stringify(valuesOf(row as object))),
      );
      shifts.add(shift!);
    }
    expect([...shifts].sort((a, b) => a - b)).toEqual([-DAY, DAY]);
  });

  it('of omission leaves out every second row, or the second half', async () => {
    const { truth } = lying('half');
    const all = (await truth('btc-bitcoin'))!.map((row) => row.openTime);
    const left = async (fault: FaultName) =>
      (await rowsOf(await lying(fault).get(addressOf('btc-bitcoin')))).map((row) => row.openTime);
    expect(await left('thinned')).toEqual(all.filter((_, i) => i % 2 === 0));
    expect(await left('half')).toEqual(all.slice(0, 10));
  });

  it('of the headers has a Date in 1970 or days ahead, none at all, or an Age of ten years', async () => {
    const dates = new Set<number>();
    for (let seed = 0; seed < 30; seed++) {
      const { get, truth } = lying('bad-date', seed);
      const answer = await get(addressOf('btc-bitcoin'));
      dates.add(Date.parse(answer.headers.get('date')!));
      expect(await answer.text()).toBe(writeOhlcvRows((await truth('btc-bitcoin'))!));
    }
    expect(dates).toContain(0);
    const ahead = [...dates].filter((date) => date !== 0).map((date) => (date - now) / DAY);
    expect([Math.min(...ahead) >= 1, Math.max(...ahead) <= 9, ahead.length > 3]).toEqual([true, true, true]);
    const none = await lying('no-date').get(addressOf('btc-bitcoin'));
    expect([none.status, none.headers.has('date')]).toEqual([200, false]);
    const old = await lying('bad-age').get(addressOf('btc-bitcoin'));
    expect(old.headers.get('age')).toBe('315360000');
  });

  it.each([...LIES, 'empty'] as const)('is told once: %s', async (fault) => {
    const { get, truth, simulator } = lying(fault, 3);
    const told = () => simulator.counters().faults[fault] ?? 0;
    const wide = { from: question.from, to: today - DAY };
    await (await get(addressOf('btc-bitcoin', wide))).text();
    expect(told()).toBe(1);
    // The next answers about the same candles are true, whatever the request; those about other candles are not.
    for (const query of [wide, wide, { from: today - 5 * DAY, to: today }, wide]) {
      const again = await get(addressOf('btc-bitcoin', query));
      expect(await again.text()).toBe(writeOhlcvRows((await truth('btc-bitcoin', query))!));
      expect([again.headers.get('date'), again.headers.get('age')]).toEqual([new Date(now).toUTCString(), null]);
    }
    expect(told()).toBe(1);
    await get(addressOf('btc-bitcoin', { from: question.from - 20 * DAY, to: question.from - DAY }));
    await get(addressOf('btc-bitcoin', { ...wide, quote: 'btc' }));
    expect(told()).toBe(3);
  });

  it('about anything else is followed by the truth', async () => {
    const { get } = lying('no-date');
    const hasDate: boolean[] = [];
    for (let i = 0; i < 5; i++) hasDate.push((await get('http://x/v1/coins')).headers.has('date'));
    expect(hasDate).toEqual([false, true, false, true, false]);
  });
});
