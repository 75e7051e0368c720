import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { givenSeries, storeAnswer } from '../support/given-candles.ts';
import { seedSeries } from '../support/warehouse.ts';
import { type CoinWorld, createCoinWorld } from './coin-world.ts';

const FIRST = Date.UTC(2024, 0, 1);
const COIN = 'btc-bitcoin';
const PAGE = `/ui/coins/${COIN}`;
let world: CoinWorld;

/** Forty days: one was revised, two are empty, one is provisional, three have no answer. */
beforeAll(async () => {
  world = await createCoinWorld();
  const { sql } = world;
  const day = (n: number) => FIRST + n * DAY;
  const span = { from: FIRST, to: day(40) };
  const daily = await givenSeries(sql, { coinId: COIN, interval: '24h', span });
  const values = Array.from({ length: 36 }, (_, i) =>
    i === 10 || i === 11 ? null : ([100 + i, 110 + i, 90 + i, 1000] as const),
  );
  await storeAnswer(sql, daily, { span: { from: FIRST, to: day(36) }, slots: values });
  await storeAnswer(sql, daily, { span: { from: day(5), to: day(6) }, slots: [[50, 60, 40, 7]] });
  await storeAnswer(sql, daily, { span: { from: day(36), to: day(37) }, slots: [[500, 600, 400, 5]], isFinal: false });
  const hours = { from: FIRST, to: day(3) };
  const hourly = await givenSeries(sql, { coinId: 'eth-ethereum', interval: '1h', span: hours });
  const slots = Array.from({ length: 72 }, (_, i) => [10 + i, 20 + i, 5 + i, i] as const);
  await storeAnswer(sql, hourly, { span: hours, slots });
  await sql`update market.coin set name = 'Bitcoin', symbol = 'BTC' where id = ${COIN}`;
  await sql`insert into market.coin_rename (old_id, new_id, renamed_at, source) values ('xbt-bitcoin', ${COIN}, '2020-02-03', 'changelog')`;
});
afterAll(() => world.close());

const textOf = (html: string) =>
  html
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ')
    .replaceAll('&#39;', "'")
    .trim();
const sectionOf = (html: string, id: string) =>
  new RegExp(`<section id="${id}".*?</section>\\s*(?=<)`, 's').exec(html)?.[0] ?? '';
const rowsOf = (html: string) => [...html.matchAll(/<tr[^>]*>(.*?)<\/tr>/gs)].slice(1).map(([, row]) => textOf(row!));

describe('the page of a coin', () => {
  test('describes the coin, shows its bars, and says why others are missing', async () => {
    const { status, text } = await world.get(PAGE);
    expect(status).toBe(200);
    expect(text).toContain('<h1>Bitcoin (BTC)</h1>');
    expect(textOf(text)).toContain('btc-bitcoin rank 1 active');
    const rows = rowsOf(sectionOf(text, 'bars').split('</table>')[0]!);
    expect(rows).toHaveLength(37);
    expect(rows[0]).toBe('2024-02-07 not asked yet, 3 slots until 2024-02-10');
    expect(rows[1]).toBe('2024-02-06 500 600 400 505 5 provisional');
    expect(rows[2]).toBe('2024-02-05 135 145 125 136.35 1,000 final');
    expect(rows).toContain('2024-01-11 empty, not confirmed yet, 2 slots until 2024-01-13');
    expect(rows).toContain('2024-01-06 50 60 40 50.5 7 final, revised');
    expect(text).toContain('href="https://www.tradingview.com/"');
    expect(text).not.toMatch(/ style=/);
  });

  test('shows the bars of a series that is wanted without an end', async () => {
    const { sql } = world;
    await sql`update market.series set wanted = wanted + tstzmultirange(tstzrange(${FIRST}, null)) where coin_id = ${COIN}`;
    try {
      const { text } = await world.get(`${PAGE}?to=2024-02-10`);
      const rows = rowsOf(sectionOf(text, 'bars').split('</table>')[0]!);
      expect(rows).toContain('2024-02-05 135 145 125 136.35 1,000 final');
      const newest = rowsOf(sectionOf((await world.get(PAGE)).text, 'bars').split('</table>')[0]!);
      expect(newest[0]).toMatch(/^2\d{3}-.* not asked yet, [\d,]+ slots until 2\d{3}-/);
    } finally {
      await sql`update market.series set wanted = tstzmultirange(tstzrange(${FIRST}, ${FIRST + 40 * DAY})) where coin_id = ${COIN}`;
    }
  });

  test('opened by an old id says what became of the id', async () => {
    const { status, text } = await world.get('/ui/coins/xbt-bitcoin');
    expect(status).toBe(200);
    expect(textOf(text)).toContain('xbt-bitcoin is now btc-bitcoin');
    expect(textOf(text)).toContain('noticed 2020-02-03 00:00Z');
  });

  test('is a 404 for an id that no coin ever had', async () => {
    const { status, text } = await world.get('/ui/coins/%3Cb%3Enone');
    expect(status).toBe(404);
    expect(text).toContain('&lt;b&gt;none');
    expect(text).not.toContain('<b>none');
  });

  test('says when no stored candles can make bars of the chosen interval', async () => {
    const { text } = await world.get(`${PAGE}?interval=1h`);
    expect(textOf(text)).toContain(
      'There are no 1h candles in usd, and no finer candles to aggregate. Stored: 24h usd.',
    );
  });

  test.each([
    ['interval=7x', 'interval must be a multiple of 5 minutes'],
    ['interval=7m', 'interval must be a multiple of 5 minutes'],
    ['interval=0h', 'interval must be a multiple of 5 minutes'],
    ['quote=eur', 'quote must be usd or btc, got &quot;eur&quot;'],
    ['span=2y', 'span must be one of 30d, 90d, 1y, 5y, all'],
    ['from=yesterday', 'from must be a date'],
    ['from=2024-02-31', 'from must be a date like 2024-01-31'],
    ['at=2023-02-29T12:00Z', 'at must be a date like 2024-01-31'],
    ['to=9999999999999999', 'to must be a date'],
    ['from=2024-02-01&to=2024-01-01', 'from must be before to'],
    ['at=2190-01-01', 'at must not be in the future'],
    ['drawdown=1', 'drawdown must be true or false'],
  ])('refuses %s, for the script as well', async (query, message) => {
    for (const path of [PAGE, `${PAGE}/candles`]) {
      const { status, text } = await world.get(`${path}?${query}`);
      expect(status).toBe(400);
      expect(text).toContain(message);
    }
  });

  test('computes the drawdown from the highest close of the span', async () => {
    const { text } = await world.get(`${PAGE}?drawdown=true&from=2024-01-01&to=2024-01-08`);
    const rows = rowsOf(sectionOf(text, 'bars').split('</table>')[0]!);
    expect(rows[0]).toBe('2024-01-07 106 116 96 107.06 1,000 0.0% final');
    expect(rows[1]).toBe('2024-01-06 50 60 40 50.5 7 -51.9% final, revised');
  });
});

describe('the story of a slot', () => {
  test('shows the revision of a revised day, from the link in the table', async () => {
    const { text } = await world.get(`${PAGE}?interval=24h&quote=usd&at=2024-01-06`);
    const story = textOf(sectionOf(text, 'story'));
    expect(story).toContain('History of the slot 2024-01-06 00:00Z, 24h usd');
    expect(story).toMatch(/wanted The series was wanted for the first time/);
    expect(story).toMatch(/open 105/);
    expect(story).toMatch(/now The slot is final: open 50/);
  });

  test('shows the first finer candle when the bar is made of finer candles', async () => {
    const { text } = await world.get('/ui/coins/eth-ethereum?interval=24h&at=2024-01-02T13:30Z');
    const story = textOf(sectionOf(text, 'story'));
    expect(story).toContain('The bar of 2024-01-02 00:00Z is aggregated from 1h candles');
    expect(story).toContain('History of the slot 2024-01-02 00:00Z, 1h usd');
  });
});

describe('the bars for the chart script', () => {
  const read = async (path: string) => JSON.parse((await world.get(path)).text);

  test.each(['2h', '3h', '24h', '1w', '1mo'])('of %s are those that market.ohlcv makes', async (interval) => {
    const width = { '2h': '2 hours', '3h': '3 hours', '24h': '1 day', '1w': '1 week', '1mo': '1 month' }[interval]!;
    const rows = await world.sql<Record<string, number>[]>`
      select open_time as at, open, high, low, close, volume, complete::int from market.ohlcv('eth-ethereum', ${width}::interval, null::timestamptz)`;
    const { bars } = await read(`/ui/coins/eth-ethereum/candles?interval=${interval}`);
    expect(rows.length).toBeGreaterThan(0);
    expect(bars.map((bar: number[]) => bar.slice(0, 8))).toEqual(
      rows.map((r) => [r.at! / 1000, r.open, r.high, r.low, r.close, r.volume, r.complete, 0]),
    );
  });

  test('come with the reason of each hole, and only with the holes of the requested span', async () => {
    const { from, to, hasEarlier, bars, holes } = await read(`${PAGE}/candles?from=2024-01-10&to=2024-01-14`);
    const day = (n: number) => (FIRST + n * DAY) / 1000;
    expect({ from, to, hasEarlier }).toEqual({ from: day(9), to: day(13), hasEarlier: true });
    expect(bars.map(([at]: number[]) => at)).toEqual([day(9), day(12)]);
    expect(holes).toEqual([[day(10), day(12), 2, 'empty, not confirmed yet', null]]);
  });

  test.each([
    'from=2024-01-10T00:00Z&to=2024-01-14T00:00:00.000Z',
    'from=2024-01-10T00:00&to=2024-01-14%2000:00',
    'from=2024-01-10T02:00%2B02:00&to=2024-01-13T19:00-05:00',
    `from=${FIRST + 9 * DAY}&to=${FIRST + 13 * DAY}`,
  ])('of a span are the same with %s as with two dates', async (span) => {
    expect(await read(`${PAGE}/candles?${span}`)).toEqual(await read(`${PAGE}/candles?from=2024-01-10&to=2024-01-14`));
  });

  test('are the newest 3,000 of a longer span', async () => {
    const [first, count] = [Date.UTC(2023, 0, 1), 3_500];
    const span = { from: first, to: first + count * HOUR };
    const candles = Array.from({ length: count }, (_, i) => first + i * HOUR);
    await seedSeries(world.sql, { coinId: 'ltc-litecoin', interval: '1h', wanted: [span], covered: [span], candles });
    const { from, to, hasEarlier, bars } = await read('/ui/coins/ltc-litecoin/candles?interval=1h&from=0');
    expect({ from, to, hasEarlier }).toEqual({
      from: (span.to - 3_000 * HOUR) / 1000,
      to: span.to / 1000,
      hasEarlier: true,
    });
    expect(bars).toHaveLength(3_000);
    const before = await read(`/ui/coins/ltc-litecoin/candles?interval=1h&from=0&to=${from * 1000}`);
    expect({ n: before.bars.length, to: before.to, more: before.hasEarlier }).toEqual({
      n: 500,
      to: from,
      more: false,
    });
  });

  test('of a price series have one value', async () => {
    const span = { from: FIRST, to: FIRST + 3 * DAY };
    const candles = [FIRST, FIRST + 2 * DAY];
    await seedSeries(world.sql, { coinId: 'xrp-xrp', interval: 'prices-1d', wanted: [span], covered: [span], candles });
    const { bars, holes } = await read('/ui/coins/xrp-xrp/candles');
    expect(bars.map((bar: number[]) => bar.slice(0, 4))).toEqual(candles.map((at) => [at / 1000, null, null, null]));
    expect(bars[0][4]).toBeGreaterThan(0);
    expect(holes).toEqual([[(FIRST + DAY) / 1000, (FIRST + 2 * DAY) / 1000, 1, 'empty', null]]);
    const { text } = await world.get('/ui/coins/xrp-xrp');
    expect(rowsOf(sectionOf(text, 'bars').split('</table>')[0]!)[1]).toContain('2024-01-02 empty');
  });
});

describe('tracking from the page', () => {
  const since = new Date(Date.now() - 400 * DAY).toISOString().slice(0, 10);
  const TRACK = `/ui/do/track?coin=${COIN}&interval=1h&quote=usd&since=${since}`;
  const rules = () => world.sql<{ coinId: string; interval: string }[]>`select coin_id, interval from ops.track`;
  const audit = async () =>
    (
      await world.sql<
        { actor: string; command: string; message: string | null }[]
      >`select actor, command, message from ops.audit order by id`
    ).map((row) => ({ ...row }));

  test('shows a visitor the price, but does not let the visitor track', async () => {
    const { text } = await world.get(TRACK);
    // One an hour, minus the five minutes between two ticks of the schedule.
    expect(textOf(text)).toMatch(/Its target age of \w+ costs 27 requests a day\./);
    expect(textOf(text)).toMatch(/Its past costs [\d,]+ requests?, once\./);
    expect(text).toContain('Only an operator may do this.');
    expect((await world.confirm(TRACK, '')).location).toMatch(/^\/ui\/sign-in/);
    expect(await rules()).toEqual([]);
  });

  test('lets an operator track and untrack, and records both in the audit log', async () => {
    const cookie = await world.signIn();
    const { status, location } = await world.confirm(TRACK, cookie);
    expect(status).toBe(303);
    expect(await rules()).toEqual([{ coinId: COIN, interval: '1h' }]);
    const after = await world.get(location!, cookie);
    expect(textOf(after.text)).toContain('1h usd of btc-bitcoin is tracked; 1 series in total.');
    expect(rowsOf(sectionOf(after.text, 'series')).find((row) => row.startsWith('1h usd'))).toMatch(
      /yes, by id 1h .*untrack$/,
    );

    expect(textOf((await world.get(TRACK)).text)).toContain(`A rule already tracks it, with data from ${since} on`);
    const untrack = `/ui/do/untrack?coin=${COIN}&interval=1h&quote=usd`;
    const removed = await world.confirm(untrack, cookie);
    expect(removed.status).toBe(303);
    expect(await rules()).toEqual([]);
    expect(textOf((await world.get(removed.location!, cookie)).text)).toContain(
      'The rule for 1h usd of btc-bitcoin is removed.',
    );
    const actor = 'ada (dashboard)';
    const [tracked, untracked] = await audit();
    expect(tracked).toMatchObject({ actor, message: null });
    expect(tracked!.command).toMatch(
      new RegExp(`^chandler track add btc-bitcoin --interval 1h --quote usd --since ${since}( # \\d+ requests?)?$`),
    );
    expect(untracked).toEqual({
      actor,
      command: 'chandler track remove btc-bitcoin --interval 1h --series candles --quote usd',
      message: null,
    });
  });

  test.each([
    ['track?coin=none', 'There is no coin &quot;none&quot;'],
    ['track?interval=24h', 'coin is missing'],
    [`track?coin=${COIN}&interval=2h`, 'interval must be like 24h'],
    [`track?coin=${COIN}&quote=eur`, 'quote must be usd or btc'],
    [`track?coin=${COIN}&since=2190-01-01`, 'since must be a date'],
    [`track?coin=${COIN}&since=2024-02-31`, 'since must be a date like 2024-01-31'],
    [`untrack?coin=${COIN}&interval=24h`, 'no rule names btc-bitcoin with 24h usd'],
  ])('refuses %s', async (path, message) => {
    const { status, text } = await world.get(`/ui/do/${path}`);
    expect(status).toBe(400);
    expect(text).toContain(message);
  });

  test('changes nothing when the form lacks the token of the session', async () => {
    const cookie = await world.signIn();
    const { status, text } = await world.confirm(TRACK, cookie, 'guessed');
    expect(status).toBe(400);
    expect(text).toContain('Please confirm again');
    expect(await rules()).toEqual([]);
  });
});
