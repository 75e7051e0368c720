/** What other currencies are worth: the fewest requests, all from one update of the upstream; and what is served with the rates. */
import { afterEach, expect, test } from 'vitest';
import { isFound } from '../../../src/contract/answer/not-found.ts';
import { provenanceOf } from '../../../src/contract/answer/provenance.ts';
import { FIATS } from '../../../src/contract/record/fiats.ts';
import { DAY, HOUR } from '../../../src/core/interval.ts';
import { withoutRetry } from '../../../src/ingest/request/outage-retry.ts';
import { REQUESTS_OF_RATES, readRates } from '../../../src/ingest/snapshot/rates.ts';
import { createSnapshots } from '../../../src/ingest/snapshot/snapshots.ts';
import { dollarsPer } from '../../../src/simulator/exchange-rates.ts';
import { createWarehouse } from '../../../src/views/market/warehouse.ts';
import { type Script, says } from '../../support/scripted.ts';
import { createScriptedWorld, type ScriptedWorld } from '../../support/scripted-world.ts';

let made: ScriptedWorld;
afterEach(() => made.world.close());

const CURRENCIES = FIATS.map(({ symbol }) => symbol).filter((symbol) => symbol !== 'USD');

type StoredRate = { currency: string; price: number; updatedAt: number; change: number | null };
/** The rate in the simulator's market; the worlds of these tests have the seed 3. */
const dollarsAt = (currency: string, at: number) => dollarsPer(currency, at, 3)!;

async function open() {
  made = await createScriptedWorld();
  const { database, clock } = made.world;
  const { session } = await made.world.open();
  made.upstream.forget();
  const { sql } = database;
  const { signal } = new AbortController();
  const read = (retry = withoutRetry) =>
    readRates({ sendRequest: session.sendRequest, accountId: session.accountId, sql, clock, signal, retry });
  const stored = () =>
    sql<
      StoredRate[]
    >`select currency, price, updated_at, percent_change_24h as change from market.rate order by currency, at`;
  const snapshots = createSnapshots({ sql, sendRequest: session.sendRequest, clock, accountId: session.accountId });
  return { sql, clock, read, stored, snapshots, session };
}

test('an answer that was committed before the connection was cut is not stored again', async () => {
  const { read, stored, sql } = await open();
  // Each attempt is committed, and its connection is cut before the answer of Postgres arrives.
  expect(await read(async (work) => [await work(false), await work(true)][1]!)).toEqual({ kind: 'done' });
  expect(made.upstream.log).toHaveLength(REQUESTS_OF_RATES);
  expect(await sql`select outcome from ops.fetch where endpoint = 'rates'`).toHaveLength(REQUESTS_OF_RATES);
  expect(await stored()).toHaveLength(CURRENCIES.length);
});

test('all currencies take fourteen requests, and have the values of the upstream', async () => {
  const { read, stored, sql } = await open();
  expect(await read()).toEqual({ kind: 'done' });
  expect(made.upstream.log).toHaveLength(14);
  expect(REQUESTS_OF_RATES).toBe(14);
  const rates = await stored();
  expect(rates.map(({ currency }) => currency)).toEqual([...CURRENCIES].sort());
  for (const { currency, price, updatedAt } of rates) expect(price / dollarsAt(currency, updatedAt)).toBeCloseTo(1, 9);
  const [spent] = await sql`select month_spent::int as n from ops.quota_spent where name = 'rates'`;
  expect(spent).toEqual({ n: 14 });
});

test('the rates of every day are stored, and change from day to day as the upstream says', async () => {
  const { clock, read, stored } = await open();
  for (let day = 0; day < 3; day++) {
    await read();
    made.world.clock.advanceTo(clock.now() + DAY);
  }
  const rates = await stored();
  expect(rates).toHaveLength(3 * CURRENCIES.length);
  for (const currency of CURRENCIES) {
    const days = rates.filter((rate) => rate.currency === currency);
    expect(new Set(days.map(({ price }) => price)).size).toBe(3);
    for (const [i, { price, updatedAt, change }] of days.entries()) {
      expect(price / dollarsAt(currency, updatedAt)).toBeCloseTo(1, 9);
      if (i === 0) continue;
      const moved = (price / days[i - 1]!.price - 1) * 100;
      // The runs are a day and the duration of a run apart; upstream rounds the changes to two digits.
      expect(Math.abs(change! - moved)).toBeLessThan(0.1);
    }
  }
});

test('an update of the upstream between two answers costs one request more, and no rate mixes two updates', async () => {
  const { clock, read, stored } = await open();
  const startedAt = clock.now();
  let asked = 0;
  const later: Script = async (request, simulated) => {
    const answer = await simulated(request);
    if (++asked < 5) return answer;
    const ticker = (await answer.json()) as { last_updated: string; quotes: Record<string, { price: number }> };
    // Bitcoin costs twice as much.
    for (const quote of Object.values(ticker.quotes)) quote.price *= 2;
    const last_updated = new Date(Date.parse(ticker.last_updated) + 60_000).toISOString().replace('.000', '');
    return Response.json({ ...ticker, last_updated }, { headers: answer.headers });
  };
  made.upstream.script = later;
  await read();
  const rates = await stored();
  expect(rates).toHaveLength(CURRENCIES.length);
  for (const { currency, price } of rates) expect(price / dollarsAt(currency, startedAt)).toBeCloseTo(1, 9);
  expect(made.upstream.log.length).toBeLessThanOrEqual(16);
});

test('an answer that is no ticker of bitcoin is not used; a refusal waits a day', async () => {
  const { read, stored } = await open();
  made.upstream.script = async (request, simulated) =>
    simulated(new Request(request.url.replace('btc-bitcoin', 'eth-ethereum')));
  await expect(read()).rejects.toThrow('expected the ticker of btc-bitcoin, got that of eth-ethereum');
  made.upstream.script = () => says(403, 'not in this plan');
  expect(await read()).toMatchObject({ kind: 'held', until: expect.any(Number) });
  expect(await stored()).toEqual([]);
});

test('a 402 whose text is unknown, with requests left, is requested less and less often, at whatever ticks', async () => {
  const { clock, read, stored } = await open();
  made.upstream.script = () => says(402, 'payment required');
  const end = clock.now() + 30 * DAY;
  for (let runs = 0; clock.now() < end && made.upstream.log.length < 100; runs++) {
    const outcome = await read();
    if (outcome.kind !== 'held') throw new Error(`not held, but ${outcome.kind}`);
    expect(outcome.until).toBeGreaterThan(clock.now());
    // Now the run itself goes on, now the next tick comes before.
    clock.advanceTo(runs % 2 === 0 ? outcome.until : Math.min(outcome.until, clock.now() + HOUR));
  }
  expect(made.upstream.log.length).toBeGreaterThanOrEqual(30);
  expect(made.upstream.log.length).toBeLessThan(40);
  made.upstream.script = null;
  expect(await read()).toEqual({ kind: 'done' });
  expect(await stored()).toHaveLength(CURRENCIES.length);
});

test('tickers, exchanges, markets and the price converter are served in other currencies; without a fresh rate they are null, and partial', async () => {
  const { read, stored, clock, sql, snapshots } = await open();
  await snapshots.tickers();
  await snapshots.exchanges();
  const served = () => createWarehouse({ sql, clock });
  const ticker = async () => {
    const found = await served().ticker({ coinId: 'btc-bitcoin', quotes: ['USD', 'EUR', 'JPY'] });
    if (!isFound(found)) throw new Error('not found');
    return { found, coverage: provenanceOf(found)?.coverage };
  };
  const before = await ticker();
  expect(before).toMatchObject({ coverage: 'partial', found: { quotes: { EUR: { price: null } } } });
  await read();
  const { found, coverage } = await ticker();
  const { updatedAt } = (await stored())[0]!;
  expect(coverage).toBe('full');
  const usd = found.quotes.USD!.price!;
  for (const currency of ['EUR', 'JPY']) {
    const quote = found.quotes[currency]!;
    expect(quote.price! * dollarsAt(currency, updatedAt)).toBeCloseTo(usd, 4);
    const moved = dollarsAt(currency, updatedAt) / dollarsAt(currency, updatedAt - DAY);
    const change = ((1 + found.quotes.USD!.percent_change_24h! / 100) / moved - 1) * 100;
    // Upstream rounds changes to two digits.
    expect(Math.abs(quote.percent_change_24h! - change)).toBeLessThan(0.03);
  }
  const [first] = await served().exchanges({ quotes: ['USD', 'CHF'] });
  const volumes = first!.quotes as Record<string, { adjusted_volume_24h: number }>;
  expect(volumes.CHF!.adjusted_volume_24h * dollarsAt('CHF', updatedAt)).toBeCloseTo(
    volumes.USD!.adjusted_volume_24h,
    2,
  );
  const converted = await served().convert({ baseId: 'eur-euro', quoteId: 'chf-swiss-franc', amount: 100 });
  if (!isFound(converted)) throw new Error('not found');
  expect(converted.price).toBeCloseTo((100 * dollarsAt('EUR', updatedAt)) / dollarsAt('CHF', updatedAt), 6);
  expect(Date.parse(converted.base_price_last_updated)).toBe(updatedAt);
  // Two days later.
  made.world.clock.advanceTo(clock.now() + 2 * DAY);
  await snapshots.tickers();
  expect(await ticker()).toMatchObject({ coverage: 'partial', found: { quotes: { EUR: { price: null } } } });
  expect(await served().convert({ baseId: 'eur-euro', quoteId: 'usd-us-dollars', amount: 1 })).toMatchObject({
    price: null,
  });
});
