/** The page of a coin that has candles of several intervals over different times. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { givenSeries, storeAnswer } from '../support/given-candles.ts';
import { seedSeries } from '../support/warehouse.ts';
import { type CoinWorld, createCoinWorld } from './coin-world.ts';

const COIN = 'sol-solana';
const PAGE = `/ui/coins/${COIN}`;
const DAYS = { from: Date.UTC(2023, 0, 1), to: Date.UTC(2023, 3, 1) };
const HOURS = { from: Date.UTC(2024, 0, 1), to: Date.UTC(2024, 0, 4) };
let world: CoinWorld;

/** Days of early 2023, and hours of three days of 2024. The last six of those hours and the whole day after them are missing. */
beforeAll(async () => {
  world = await createCoinWorld();
  const { sql } = world;
  const daily = await givenSeries(sql, { coinId: COIN, interval: '24h', span: DAYS });
  const days = Array.from({ length: 90 }, (_, i) => [100 + i, 110 + i, 90 + i, 1000] as const);
  await storeAnswer(sql, daily, { span: DAYS, slots: days });
  const wanted = { from: HOURS.from, to: HOURS.to + DAY };
  const hourly = await givenSeries(sql, { coinId: COIN, interval: '1h', span: wanted });
  const known = { from: HOURS.from, to: HOURS.to - 6 * HOUR };
  const hours = Array.from({ length: 66 }, (_, i) => [10 + i, 20 + i, 5 + i, i] as const);
  await storeAnswer(sql, hourly, { span: known, slots: hours });
});
afterAll(() => world.close());

const textOf = (html: string) =>
  html
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
const sectionOf = (html: string, id: string) =>
  new RegExp(`<section id="${id}".*?</section>\\s*(?=<)`, 's').exec(html)?.[0] ?? '';
const rowsOf = (html: string) =>
  [...(sectionOf(html, 'bars').split('</table>')[0] ?? '').matchAll(/<tr[^>]*>(.*?)<\/tr>/gs)]
    .slice(1)
    .map(([, row]) => textOf(row!));

describe('days of which only the later ones can be made of hours', () => {
  const captionOf = (html: string) => /<caption.*?<\/caption>/.exec(html)?.[0];

  // Whatever the upstream says about the start of the coin, what is stored is shown.
  test.each([null, '2024-01-01'])('are all shown when the coin has data since %s', async (since) => {
    await world.sql`update market.coin set first_data_at = ${since} where id = ${COIN}`;
    const all = await world.get(`${PAGE}?interval=24h&span=all`);
    expect(captionOf(all.text)).toContain('369 slots from 2023-01-01 to 2024-01-05');
    const { bars } = JSON.parse((await world.get(`${PAGE}/candles?interval=24h&span=all`)).text);
    expect(bars).toHaveLength(92);
    const { text } = await world.get(`${PAGE}?interval=24h&from=2023-02-01&to=2023-02-05`);
    expect(rowsOf(text)).toHaveLength(4);
    expect(rowsOf(text)[3]).toBe('2023-02-01 131 141 121 132.31 1,000 final');
  });

  test('have chart, table and story that agree about each kind of slot', async () => {
    const { text } = await world.get(`${PAGE}?interval=24h&from=2024-01-01`);
    expect(rowsOf(text)).toEqual([
      '2024-01-03 not asked yet, 2 slots until 2024-01-05',
      '2024-01-02 34 67 29 57.57 852 final, aggregated from finer candles',
      '2024-01-01 10 43 5 33.33 276 final, aggregated from finer candles',
    ]);
    const { bars, states } = JSON.parse((await world.get(`${PAGE}/candles?interval=24h&span=all`)).text);
    expect(bars.map((bar: number[]) => states[bar[8]!]).filter((state: string) => state !== 'final')).toEqual([
      'final, aggregated from finer candles',
      'final, aggregated from finer candles',
    ]);
    const storyOf = async (at: string) =>
      textOf(sectionOf((await world.get(`${PAGE}?interval=24h&at=${at}`)).text, 'story'));
    expect(await storyOf('2023-02-01')).toMatch(
      /^History of the slot 2023-02-01 00:00Z, 24h usd .* The slot is final: open 131/,
    );
    expect(await storyOf('2024-01-02')).toMatch(
      /^History of the slot 2024-01-02 00:00Z, 1h usd The bar of .* is aggregated from 1h candles.*The slot is final: open 34/,
    );
    expect(await storyOf('2024-01-04')).toMatch(/^History of the slot 2024-01-04 00:00Z, 1h usd .*The slot is wanted/);
  });

  test('include a bar marked incomplete when it is old and parts of it are missing', async () => {
    const { text } = await world.get(`${PAGE}?interval=36h&from=2024-01-02&to=2024-01-05`);
    expect(rowsOf(text).find((row) => /^2024-01-0[234].* \d/.test(row) && row.includes('incomplete'))).toMatch(
      /incomplete, aggregated from finer candles$/,
    );
    expect(text).not.toContain('provisional, made');
  });
});

test('a bar that was stored before it was final is made of finer candles that are final', async () => {
  const id = 'link-chainlink';
  const days = { from: HOURS.from, to: HOURS.from + 2 * DAY };
  const daily = await givenSeries(world.sql, { coinId: id, interval: '24h', span: days });
  await storeAnswer(world.sql, daily, {
    span: days,
    slots: [
      [500, 510, 490, 1],
      [600, 610, 590, 1],
    ],
    isFinal: false,
  });
  const hourly = await givenSeries(world.sql, { coinId: id, interval: '1h', span: days });
  const hours = Array.from({ length: 24 }, (_, i) => [10 + i, 20 + i, 5 + i, i] as const);
  await storeAnswer(world.sql, hourly, { span: { from: days.from, to: days.from + DAY }, slots: hours });
  const { text } = await world.get(`/ui/coins/${id}?interval=24h&from=2024-01-01`);
  const [second, first] = rowsOf(text).slice(-2);
  expect(first).toBe('2024-01-01 10 43 5 33.33 276 final, aggregated from finer candles');
  expect(second).toMatch(/^2024-01-02 600 610 590 606 1 provisional$/);
});

test('a bar reads no more rows than a page may read', async () => {
  const id = 'doge-dogecoin';
  const span = { from: Date.UTC(2023, 0, 1), to: Date.UTC(2024, 0, 1) };
  await seedSeries(world.sql, { coinId: id, interval: '5m', wanted: [span], covered: [span], candles: [span.from] });
  for (const path of [`/ui/coins/${id}`, `/ui/coins/${id}/candles`]) {
    // 8,783 hours are 105,396 candles of five minutes.
    const { status, text } = await world.get(`${path}?interval=8783h`);
    expect(status).toBe(400);
    expect(text).toMatch(/interval must be shorter, got (&quot;|\\?")8783h.*more than 60,000 5m candles/);
  }
  const { text } = await world.get(`/ui/coins/${id}?interval=2001h`);
  expect(rowsOf(text).length).toBeLessThanOrEqual(2);
  expect(text).toContain('Earlier bars');
  const { from, to, hasEarlier } = JSON.parse((await world.get(`/ui/coins/${id}/candles?interval=2001h&from=0`)).text);
  expect({ slots: (to - from) / (2001 * 3600), hasEarlier }).toEqual({ slots: 2, hasEarlier: true });
});

test('each link to fill a series opens a page with its price, even if the wanted span ends within a millisecond', async () => {
  const id = 'ada-cardano';
  await world.sql`
    insert into market.coin (id, name, symbol, rank, type, is_new, is_active, first_seen_at, last_seen_at, rank_seen_at)
    values (${id}, 'Cardano', 'ADA', 9, 'coin', false, true, now(), now(), now())`;
  const since = new Date(Date.now() - 200 * DAY).toISOString().slice(0, 10);
  for (const [interval, from, to] of [
    ['24h', `${since}T00:00:00.000151Z`, `${since.slice(0, 4)}-12-31T11:03:36.614151Z`],
    ['1h', `${since}T10:00:00.5004Z`, new Date(Date.now() - 20 * DAY).toISOString().replace('Z', '151Z')],
    ['12h', `${since}T00:00Z`, 'infinity'],
    ['6h', `${since}T05:00:00.25Z`, `${since}T13:00:00.000999Z`],
  ] as const)
    await world.sql`
      insert into market.series (coin_id, quote, interval, wanted)
      values (${id}, 'usd', ${interval}, tstzmultirange(tstzrange(${from}::text::timestamptz, ${to}::text::timestamptz)))`;
  const { text } = await world.get(`/ui/coins/${id}`);
  const links = [...text.matchAll(/href="(\/ui\/do\/backfill\?[^"]+)"/g)].map(([, href]) =>
    href!.replaceAll('&amp;', '&'),
  );
  expect(links).toHaveLength(4);
  for (const link of links) {
    const price = await world.get(link);
    expect({ link, text: textOf(price.text) }).toEqual({
      link,
      text: expect.stringMatching(
        /Fill [\d,]+ slots?|Check whether the upstream gives more|(no slot is missing|nothing can be requested)/,
      ),
    });
    expect(price.text).not.toContain('must be a date');
  }
});
