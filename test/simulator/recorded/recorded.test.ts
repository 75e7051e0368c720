import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { type Clock, createScaledClock } from '../../../src/clock.ts';
import type { OhlcvCandle } from '../../../src/contract/record/market-data.ts';
import { type CandleInterval, DAY, HOUR } from '../../../src/core/interval.ts';
import { createRecordedMarket } from '../../../src/simulator/recorded/recorded.ts';

const frozen = (at: number): Clock => createScaledClock({ speed: 0, startAt: at });
const market = createRecordedMarket({ clock: frozen(Date.UTC(2026, 0, 1)) });

function lines(path: string): string[][] {
  const file = new URL(`../../../src/simulator/recorded/recorded-data/${path}`, import.meta.url);
  return gunzipSync(readFileSync(file))
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => line.split(','));
}

async function candles(
  coinId: string,
  interval: CandleInterval,
  from = 0,
  to = Date.UTC(2026, 0, 1),
  limit = 1e9,
): Promise<readonly OhlcvCandle[]> {
  return (await market.ohlcv({ coinId, interval, quote: 'usd', from, to, limit }))!;
}

describe('the recorded market', () => {
  it('answers every hour of the file, oldest first, with the dollar volume from whichever column has it', async () => {
    const expected = lines('hourly/Bitstamp_BTCUSD_1h.csv.gz').slice(1).reverse();
    const rows = await candles('btc-bitcoin', '1h');
    expect(rows).toHaveLength(33_259);
    const told = expected.map(([unix, , , open, high, low, close, a, b]) => [
      Number(unix) * 1000,
      ...[open, high, low, close].map(Number),
      Math.round(Math.max(Number(a), Number(b))),
    ]);
    expect(rows.map((row) => [row.openTime, row.open, row.high, row.low, row.close, row.volume])).toEqual(told);
    expect(rows.every((row) => row.closeTime === row.openTime + HOUR - 1000)).toBe(true);
    expect(rows.at(-1)).toMatchObject({ openTime: Date.UTC(2022, 2, 1), volume: 2254677, marketCap: null });
    expect(rows[0]!.volume! / rows[0]!.close!).toBeLessThan(10_000);
  });

  it.each([
    ['btc-bitcoin', 'BTC', 1_865, Date.UTC(2014, 10, 28)],
    ['eth-ethereum', 'ETH', 788, Date.UTC(2017, 10, 9)],
    ['ltc-litecoin', 'LTC', 925, Date.UTC(2017, 5, 25)],
  ])('answers every day of the file for %s', async (coinId, symbol, count, first) => {
    const [header, ...all] = lines('daily/bitstamp_BTC_ETH_LTC_USD_d.csv.gz');
    const at = header!.indexOf(`${symbol}:open`);
    const rows = await candles(coinId, '24h');
    expect(rows).toHaveLength(count);
    expect(rows[0]!.openTime).toBe(first);
    const expected = all
      .filter((row) => row[at] !== '')
      .map((row) => [`${row[0]}T00:00:00.000Z`, ...row.slice(at, at + 4).map(Number)]);
    expect(rows.map((row) => [new Date(row.openTime).toISOString(), row.open, row.high, row.low, row.close])).toEqual(
      expected,
    );
  });

  it('has the twelve-day hole of March 2019 and no other', async () => {
    const rows = await candles('btc-bitcoin', '24h');
    const holes = rows.slice(1).filter((row, i) => row.openTime - rows[i]!.openTime !== DAY);
    expect(holes.map((row) => row.openTime)).toEqual([Date.UTC(2019, 3, 1)]);
    expect(await candles('btc-bitcoin', '24h', Date.UTC(2019, 2, 20), Date.UTC(2019, 2, 31))).toEqual([]);
  });

  it('includes both ends, cuts to the earliest rows, and has nothing else', async () => {
    const day = Date.UTC(2018, 0, 1);
    expect(await candles('btc-bitcoin', '24h', day, day + 10 * DAY)).toHaveLength(11);
    expect((await candles('btc-bitcoin', '24h', day, day + 10 * DAY, 2)).map((row) => row.openTime)).toEqual([
      day,
      day + DAY,
    ]);
    expect(await candles('eth-ethereum', '1h')).toEqual([]);
    expect(
      await market.ohlcv({ coinId: 'xrp-xrp', interval: '24h', quote: 'usd', from: 0, to: day, limit: 1 }),
    ).toBeNull();
    expect(
      await market.ohlcv({ coinId: 'btc-bitcoin', interval: '24h', quote: 'btc', from: 0, to: day, limit: 9 }),
    ).toEqual([]);
  });

  it('never shows a candle that has not closed by the clock', async () => {
    const then = createRecordedMarket({ clock: frozen(Date.UTC(2018, 0, 3, 12)) });
    const rows = await then.ohlcv({
      coinId: 'btc-bitcoin',
      interval: '24h',
      quote: 'usd',
      from: Date.UTC(2018, 0, 1),
      to: Date.UTC(2018, 0, 9),
      limit: 9,
    });
    expect(rows!.map((row) => row.openTime)).toEqual([Date.UTC(2018, 0, 1), Date.UTC(2018, 0, 2)]);
  });

  it('states when each coin begins, and its last price', async () => {
    const tickers = await market.tickers({ quotes: ['USD', 'BTC'] });
    expect(tickers.map((t) => [t.id, t.first_data_at, t.quotes.USD!.price])).toEqual([
      ['btc-bitcoin', '2014-11-28T00:00:00Z', 43312.27],
      ['eth-ethereum', '2017-11-09T00:00:00Z', 164.52],
      ['ltc-litecoin', '2017-06-25T00:00:00Z', 57.88],
    ]);
    expect(tickers[0]!.quotes.BTC!.price).toBe(1);
    expect((await market.coins()).every((coin) => coin.is_active)).toBe(true);
  });
});
