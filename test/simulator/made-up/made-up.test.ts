import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { OhlcvCandle } from '../../../src/contract/record/market-data.ts';
import { type CandleInterval, DAY, floorToGrid, HOUR, INTERVAL_MS, INTERVALS } from '../../../src/core/interval.ts';
import { dollarsPer } from '../../../src/simulator/exchange-rates.ts';
import { createMadeUpMarket, type Revisions } from '../../../src/simulator/made-up/made-up.ts';
import { createMadeUpWorld } from '../../../src/simulator/made-up/made-up-world.ts';
import { frozenClock } from '../../service/conformance.ts';

const world = createMadeUpWorld({ seed: 1, coins: 30 });
const noon = Date.UTC(2024, 5, 1, 12, 3, 20);

function marketAt(now: number, revisions?: Revisions) {
  return createMadeUpMarket({ world, clock: frozenClock(now), ...(revisions && { revisions }) });
}

async function candles(
  now: number,
  interval: CandleInterval,
  from: number,
  to: number,
  revisions?: Revisions,
): Promise<readonly OhlcvCandle[]> {
  const query = { coinId: 'btc-bitcoin', quote: 'usd', interval, from, to, limit: 1e6 } as const;
  return (await marketAt(now, revisions).ohlcv(query))!;
}

describe('the open candle of the made-up market', () => {
  const openAt = async (now: number, interval: CandleInterval) => {
    const at = floorToGrid(now, interval);
    return (await candles(now, interval, at, at))[0];
  };

  it('closes with the minute of its data, rounded up, and never later than its slot', async () => {
    expect(await openAt(noon, '24h')).toMatchObject({ closeTime: Date.UTC(2024, 5, 1, 12, 4) });
    expect(await openAt(noon, '5m')).toMatchObject({ closeTime: Date.UTC(2024, 5, 1, 12, 4) });
    expect(await openAt(Date.UTC(2024, 5, 1, 23, 59, 30), '24h')).toMatchObject({
      closeTime: Date.UTC(2024, 5, 1, 23, 59, 59),
    });
  });

  it('does not exist at the instant its slot begins, and exists a moment later', async () => {
    for (const interval of INTERVALS) {
      const midnight = Date.UTC(2024, 5, 1);
      expect(await openAt(midnight, interval)).toBeUndefined();
      expect(await openAt(midnight + 1, interval)).toMatchObject({ openTime: midnight, closeTime: midnight + 60_000 });
    }
  });

  it('has what has happened so far: it widens, its volume grows, its open stays, and it becomes the closed candle', async () => {
    const day = Date.UTC(2024, 5, 1);
    const final = (await candles(day + 2 * DAY, '24h', day, day))[0]!;
    let before = (await openAt(day + 1, '24h'))!;
    for (let now = day + 60_001; now < day + DAY; now += 17 * 60_000) {
      const open = (await openAt(now, '24h'))!;
      expect(open.open).toBe(final.open);
      expect(open.high).toBeGreaterThanOrEqual(before.high!);
      expect(open.low).toBeLessThanOrEqual(before.low!);
      expect(open.volume).toBeGreaterThanOrEqual(before.volume!);
      expect(open.high).toBeLessThanOrEqual(final.high!);
      expect(open.volume).toBeLessThanOrEqual(final.volume!);
      before = open;
    }
    const { closeTime: _, ...values } = (await openAt(day + DAY - 1, '24h'))!;
    expect(final).toMatchObject(values);
  });

  it('has the current price at every width, and so does the ticker', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: Date.UTC(2020, 0, 1), max: Date.UTC(2024, 0, 1) }), async (now) => {
        fc.pre(now % 300_000 !== 0);
        const closes = await Promise.all(INTERVALS.map(async (interval) => (await openAt(now, interval))!.close));
        const ticker = await marketAt(now).ticker({ coinId: 'btc-bitcoin', quotes: ['USD'] });
        expect(new Set([...closes, ticker!.quotes.USD!.price]).size).toBe(1);
      }),
      { numRuns: 100 },
    );
  });
});

describe('the made-up market on its clock', () => {
  it('never shows a candle that opens at or after now', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: Date.UTC(2020, 0, 1), max: Date.UTC(2024, 0, 1) }),
        fc.constantFrom(...INTERVALS),
        async (now, interval) => {
          const rows = await candles(now, interval, now - 2 * INTERVAL_MS[interval], now + 3 * INTERVAL_MS[interval]);
          expect(Math.max(...rows.map((row) => row.openTime))).toBeLessThan(now);
          expect(
            rows.filter((row) => row.closeTime !== row.openTime + INTERVAL_MS[interval] - 1000).length,
          ).toBeLessThanOrEqual(1);
        },
      ),
    );
  });

  it('keeps every closed candle unchanged, whatever the time', async () => {
    const from = Date.UTC(2023, 0, 1);
    const early = await candles(from + 30 * DAY, '6h', from, from + 30 * DAY - 1);
    expect(await candles(from + 900 * DAY, '6h', from, from + 30 * DAY - 1)).toEqual(early);
  });

  it('does not know a coin before it begins, and lists it as inactive after its end', async () => {
    const late = world.coins.find((coin) => coin.kind === 'late')!;
    const idsAt = async (now: number) => (await marketAt(now).coins()).map((coin) => coin.id);
    expect(await idsAt(late.start)).not.toContain(late.id);
    expect(await idsAt(late.start + 1)).toContain(late.id);
    expect(
      await marketAt(late.start).ohlcv({ coinId: late.id, quote: 'usd', interval: '24h', from: 0, to: noon, limit: 1 }),
    ).toBeNull();

    const dead = world.coins.find((coin) => coin.kind === 'dead')!;
    const summary = async (now: number) => (await marketAt(now).coins()).find((coin) => coin.id === dead.id);
    expect(await summary(dead.end - 1)).toMatchObject({ is_active: true, rank: dead.index + 1 });
    expect(await summary(dead.end)).toMatchObject({ is_active: false, rank: 0 });
    expect(await marketAt(dead.end).ticker({ coinId: dead.id, quotes: ['USD'] })).toBeNull();
    expect(
      (await marketAt(dead.end + DAY).ohlcv({
        coinId: dead.id,
        quote: 'usd',
        interval: '24h',
        from: 0,
        to: noon,
        limit: 1,
      }))!,
    ).toHaveLength(1);
  });

  it('states the instant of a coin’s first candle', async () => {
    for (const ticker of await marketAt(noon).tickers({ quotes: ['USD'] })) {
      const from = new Date(ticker.first_data_at!).getTime();
      const rows = await marketAt(noon).ohlcv({
        coinId: ticker.id,
        quote: 'usd',
        interval: '5m',
        from: 0,
        to: from + HOUR,
        limit: 1,
      });
      expect(rows![0]!.openTime).toBe(from);
    }
  });

  it('has the same tickers, whatever was requested before, also on another day', async () => {
    const midnight = floorToGrid(noon, '24h');
    const quotes = ['USD'];
    for (const now of [noon, noon + HOUR, midnight - 1, midnight, midnight + 1, noon + 40 * DAY, noon - 300 * DAY]) {
      const fresh = createMadeUpMarket({ world: createMadeUpWorld({ seed: 1, coins: 30 }), clock: frozenClock(now) });
      expect(await marketAt(now).tickers({ quotes })).toEqual(await fresh.tickers({ quotes }));
    }
  });

  it('has quotes in bitcoin, ether and money', async () => {
    const [bitcoin] = await marketAt(noon).tickers({ quotes: ['USD', 'BTC', 'EUR'] });
    expect(bitcoin!.quotes.BTC).toMatchObject({ price: 1, ath_price: null });
    expect(bitcoin!.quotes.EUR!.price).toBeCloseTo(bitcoin!.quotes.USD!.price! / dollarsPer('EUR', noon, 1)!, 6);
    const ether = await marketAt(noon).ticker({ coinId: 'eth-ethereum', quotes: ['ETH'] });
    expect(ether!.quotes.ETH!.price).toBe(1);
  });
});

describe('revisions of the made-up market', () => {
  const revisions = { rate: 0.3, afterMs: 6 * HOUR };
  const from = Date.UTC(2023, 0, 1);
  const to = from + 40 * HOUR;

  it('change some candles once, a fixed time after their close, and always the same ones', async () => {
    const final = await candles(to + 10 * DAY, '1h', from, to, revisions);
    expect(final).toEqual(await candles(to + 10 * DAY, '1h', from, to));
    const first = await candles(to + HOUR, '1h', from, to, revisions);
    expect(await candles(to + HOUR, '1h', from, to, revisions)).toEqual(first);
    const changed = first.filter((row, i) => row.close !== final[i]!.close).map((row) => row.openTime);
    expect(changed.length).toBeGreaterThan(0);
    expect(changed.length).toBeLessThan(7);
    expect(Math.min(...changed)).toBeGreaterThan(to - 7 * HOUR);
    for (const at of changed) {
      const seenAt = async (now: number) => (await candles(now, '1h', at, at, revisions))[0]!.close;
      expect(await seenAt(at + HOUR + revisions.afterMs - 1)).not.toBe(await seenAt(at + HOUR + revisions.afterMs));
    }
  });
});
