/** What Home shows under needs attention: gaps, held requests, failed backfills. And when it may say that nothing does. */
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { DAY, HOUR, INTERVAL_MS } from '../../src/core/interval.ts';
import { readAccount, saveKeyRefusal } from '../../src/store/quota/account.ts';
import { recordCoins } from '../../src/store/snapshot/coin.ts';
import { saveCounted } from '../../src/store/work/counted.ts';
import { SERIES_COUNTS } from '../../src/views/operations/series-counts.ts';
import { createKey, createTestDashboard, fieldsIn } from '../support/dashboard.ts';
import { seedSeries } from '../support/warehouse.ts';
import { database, ENV, look, NOTHING, seedBackfill, textOf, useDatabase } from './needs.ts';

useDatabase();

const ACCOUNT = 'anonymous@127.0.0.1:9';

const btc = { coinId: 'btc-bitcoin', interval: '24h', covered: [], candles: [] } as const;

describe('gaps', () => {
  const wanted = [{ from: Date.UTC(2024, 0, 1), to: Date.UTC(2024, 0, 11) }];

  test('are listed, without those that an open backfill fetches', async () => {
    await seedSeries(database.sql, { ...btc, wanted });
    const first = await look();
    expect(first).toContain('10 slots of 1 series are missing and can be requested now');
    expect(first).toContain(' gaps ');
    expect(first).not.toContain(NOTHING);
    // Of another coin, of another stretch, paused: these backfills fetch nothing of the gap.
    await seedBackfill({ state: 'queued', span: '[2020-01-01,2025-01-01)', coin: 'eth-ethereum' });
    await seedBackfill({ state: 'running', span: '[2020-01-01,2024-01-01)' });
    await seedBackfill({ state: 'paused', span: '[2020-01-01,2025-01-01)' });
    expect(await look()).toContain('10 slots of 1 series are missing');
    await seedBackfill({ state: 'running', span: '[2024-01-01,2024-01-04)' });
    expect(await look()).toContain('7 slots of 1 series are missing');
    await seedBackfill({ state: 'queued', span: '[2024-01-03,2025-01-01)' });
    expect(await look()).toContain(NOTHING);
  });

  test('have a price and a button that records a backfill for them', async () => {
    const { sql } = database;
    // Two coins miss the same stretch, a third one misses more than one request holds. What is beyond the plan has no price.
    for (const coinId of ['btc-bitcoin', 'eth-ethereum']) await seedSeries(sql, { ...btc, coinId, wanted });
    const years = [{ from: Date.UTC(2022, 0, 1), to: Date.UTC(2024, 0, 11) }];
    await seedSeries(sql, { ...btc, coinId: 'ltc-litecoin', wanted: years });
    const env = { ...ENV, CHANDLER_PLAN: 'enterprise' };
    const page = await createTestDashboard(database.url, { states: () => [], env });
    try {
      const home = textOf(await page.page('/'));
      expect(home).toContain('760 slots of 3 series are missing');
      expect(home).toMatch(/The map shows where\. 5 requests Fill the gaps See the worst series/);
      const asked = textOf(await page.page('/ui/do/fill-gaps'));
      expect(asked).toContain('Fill the gaps of 3 series?');
      expect(asked).toContain('This records 2 backfills. Coins with the same gaps share one backfill.');
      expect(asked).toContain(
        '24h usd of btc-bitcoin, eth-ethereum, 2024-01-01 00:00Z to 2024-01-11 00:00Z: 2 requests.',
      );
      expect(asked).toContain('It costs 5 requests, done');
      const session = await page.signIn((await createKey(sql)).key);
      expect(await page.confirm('/ui/do/fill-gaps', session)).toMatch(/^\/ui\/backfills\?done=/);
      const rows = await sql`select coin_ids, planned_requests, requested_by from ops.backfill order by id`;
      expect(rows).toMatchObject([
        { coinIds: ['ltc-litecoin'], plannedRequests: 3, requestedBy: 'Ada (dashboard)' },
        { coinIds: ['btc-bitcoin', 'eth-ethereum'], plannedRequests: 2 },
      ]);
      expect(textOf(await page.page('/ui/do/fill-gaps', { status: 400 }))).toContain(
        'no slot is missing that can be requested now',
      );
      expect(page.errors).toEqual([]);
    } finally {
      await page.close();
    }
    // The plan free shows one day.
    expect(await look()).toContain(NOTHING);
    await sql`delete from ops.backfill`;
    expect(await look()).toMatch(
      /760 slots of them are older than the documented history limit of the plan: the cost includes only the requests that check this limit\. The map shows where\. 1 request Fill the gaps/,
    );
    expect(await look('/ui/do/fill-gaps')).toMatch(
      /One request checks whether the upstream gives more; if it does, everything costs 5 requests\..*It costs 1 request/,
    );
  });

  test('are filled without the time between them, which stays not wanted', async () => {
    const { sql } = database;
    const apart = [{ from: Date.UTC(2020, 0, 1), to: Date.UTC(2020, 0, 11) }, ...wanted];
    await seedSeries(sql, { ...btc, wanted: apart });
    const page = await createTestDashboard(database.url, {
      states: () => [],
      env: { ...ENV, CHANDLER_PLAN: 'enterprise' },
    });
    try {
      expect(textOf(await page.page('/'))).toMatch(/20 slots of 1 series are missing.* 2 requests Fill the gaps/);
      expect(textOf(await page.page('/ui/do/fill-gaps'))).toMatch(
        /Fill the gaps of 1 series\? This records 2 backfills/,
      );
      const session = await page.signIn((await createKey(sql)).key);
      const cheap = fieldsIn(await page.page('/ui/do/fill-gaps', { session }));
      // More becomes missing while the page is open.
      const eth = await seedSeries(sql, { ...btc, coinId: 'eth-ethereum', wanted });
      const dearer = textOf(await (await page.ask('/ui/do/fill-gaps', { session, form: cheap })).text());
      expect(dearer).toMatch(/Nothing was done: it now costs more than the page showed\..* It costs 3 requests/);
      for (const requests of ['', 'many']) {
        const odd = await page.ask('/ui/do/fill-gaps', { session, form: { ...cheap, requests } });
        expect(textOf(await odd.text())).toContain('Nothing was done: it now costs more than the page showed');
      }
      expect(await sql`select from ops.backfill`).toHaveLength(0);
      await sql`delete from market.series where id = ${eth}`;

      await page.confirm('/ui/do/fill-gaps', session);
      expect(await sql`select span, planned_requests from ops.backfill order by span`).toMatchObject(
        apart.map((span) => ({ span, plannedRequests: 1 })),
      );
      expect(await sql`select wanted from market.series`).toEqual([{ wanted: apart }]);
    } finally {
      await page.close();
    }
  });

  test('that reach up to now are listed, without slots that are younger than two days', async () => {
    const today = Math.floor(systemClock.now() / DAY) * DAY;
    const from = today - 10 * INTERVAL_MS['24h'];
    const id = await seedSeries(database.sql, { ...btc, wanted: [{ from, to: today }] });
    await database.sql`update market.series set wanted = tstzmultirange(tstzrange(${from}, null)) where id = ${id}`;
    expect(await look()).toMatch(/(8|9) slots of 1 series are missing/);
    await database.sql`update market.series set wanted = tstzmultirange(tstzrange(${today - DAY}, null)) where id = ${id}`;
    expect(await look()).toContain(NOTHING);
  });

  test('of more series than a few are counted by the page itself: no service counts them', async () => {
    await seedSeries(database.sql, { ...btc, wanted });
    await database.sql`
      insert into market.coin (id, name, symbol, rank, type, is_new, is_active, first_seen_at, last_seen_at, rank_seen_at)
      select 'c' || i || '-coin', 'c', 'C', i, 'coin', false, true, now(), now(), now() from generate_series(1, 2001) i`;
    await database.sql`
      insert into market.series (coin_id, quote, interval) select id, 'usd', '24h' from market.coin where id <> 'btc-bitcoin'`;
    const slots = wanted.reduce((sum, { from, to }) => sum + (to - from) / DAY, 0);
    expect(await look()).toContain(`${slots} slots are missing, including slots that the upstream refuses`);
    await database.sql`update market.series set wanted = '{}'`;
    expect(await look()).toContain(NOTHING);
  });

  test('of very many series are those that a service counted', async () => {
    await database.sql`
      insert into market.coin (id, name, symbol, rank, type, is_new, is_active, first_seen_at, last_seen_at, rank_seen_at)
      select 'c' || i || '-coin', 'c', 'C', i, 'coin', false, true, now(), now(), now() from generate_series(1, 20001) i`;
    await database.sql`insert into market.series (coin_id, quote, interval) select id, 'usd', '24h' from market.coin`;
    const one = { quote: 'usd', series: 20_001, slotsWanted: 0, slotsCovered: 0, candles: 0, finalUntil: null };
    await saveCounted(database.sql, SERIES_COUNTS, {
      ...{ countedAt: systemClock.now(), tookMs: 10 },
      answer: {
        ...{ tiers: [], catalogue: [], fetches: [] },
        series: [
          { ...one, finalUntilOldest: null, interval: '24h', slotsMissing: 3_665, slotsUnsettled: 5 },
          { ...one, finalUntilOldest: null, interval: '1h', slotsMissing: 1, slotsUnsettled: 0 },
        ],
      },
    });
    expect(await look()).toMatch(/3,661 slots are missing.*what it costs to fill a part\. See the worst series/);
  });

  test('of very many series that no service has counted are shown as not known', async () => {
    await seedSeries(database.sql, { ...btc, wanted });
    const coins = Array.from({ length: 20_001 }, (_, i) => `c${i + 1}-coin`);
    const rest = { name: 'c', symbol: 'C', rank: 0, is_new: false, is_active: true, type: 'coin' } as const;
    await recordCoins(
      database.sql,
      coins.map((id) => ({ id, ...rest })),
      systemClock.now(),
    );
    await database.sql`
      insert into market.series (coin_id, quote, interval) select 'c' || i || '-coin', 'usd', '24h' from generate_series(1, 20001) i`;
    const text = await look();
    expect(text).toContain('The number of gaps is not known');
    expect(text).not.toContain(NOTHING);
  });
});

describe('requests that are held', () => {
  test('by a refused key are shown on Home, at the top of each page and on the quota page', async () => {
    const account = await readAccount(database.sql, ACCOUNT);
    expect(account).toBeNull();
    const seed = {
      id: ACCOUNT,
      origin: 'http://127.0.0.1:9',
      plan: 'free',
      authScheme: null,
      accountPath: null,
      checkedAt: null,
      monthLimit: null,
    } as const;
    await saveKeyRefusal(database.sql, seed, { at: systemClock.now(), sentAs: 'auto', message: 'no such key' });
    for (const path of ['/', '/ui/quota', '/ui/keys'])
      expect([path, await look(path)]).toEqual([
        path,
        expect.stringContaining('The upstream refuses the key: no such key'),
      ]);
    expect(await look()).toMatch(/Problem , since [-\d: ]+Z: The upstream refuses the key/);
    expect(await look()).not.toContain(NOTHING);
    expect(await look('/ui/quota')).not.toContain('No request is held.');
  });

  test('by an exhausted day are listed', async () => {
    expect(await look()).toContain(NOTHING);
    await spend(1_000);
    const text = await look();
    expect(text).not.toContain(NOTHING);
    expect(text).toMatch(/Warning : .{0,300}Of the requests of the day 1,000 of 1,000 are sent/);
  });
});

test('an upstream that gives no valid answers is listed while requests wait for it, and afterwards', async () => {
  await spend(0);
  const down = async (until: number) => {
    await database.sql`
      update ops.quota set down_at = ${systemClock.now() - 60_000}, down_streak = 5, down_until = ${until}, down_message = 'status 502'`;
    return look();
  };
  const held = await down(systemClock.now() + HOUR);
  expect(held).toMatch(/Warning : All requests wait until .*status 502/);
  expect(held).not.toContain(NOTHING);
  const tried = await down(systemClock.now() - 1_000);
  expect(tried).toContain('The upstream gave no usable answer to the last requests: status 502');
  expect(tried).not.toContain(NOTHING);
});

async function spend(requests: number) {
  const now = systemClock.now();
  const page = await createTestDashboard(database.url, { states: () => [], env: ENV });
  await page.page('/ui/quota');
  await page.close();
  await database.sql`
    insert into ops.quota (account_id, month_start, month_spent, day_start, day_spent)
    values (${ACCOUNT}, date_trunc('month', ${now}::timestamptz, 'UTC'), ${requests}, date_trunc('day', ${now}::timestamptz, 'UTC'), ${requests})
    on conflict (account_id) do update set month_start = excluded.month_start, month_spent = excluded.month_spent,
      day_start = excluded.day_start, day_spent = excluded.day_spent`;
}

test('series that are less fresh than wanted are listed with the additional requests a day that they need', async () => {
  await database.sql`
    insert into market.coin (id, name, symbol, rank, type, is_new, is_active, first_seen_at, last_seen_at, rank_seen_at)
    select 'c' || i || '-coin', 'c', 'C', i, 'coin', false, true, now(), now(), now() from generate_series(1, 100) i`;
  await database.sql`insert into market.series (coin_id, quote, interval) select id, 'usd', '24h' from market.coin`;
  await database.sql`
    with tier as (insert into ops.tier (tier, priority, interval, target_age) values ('list', 20, '24h', interval '10 minutes') returning id)
    insert into ops.tracked (series_id, tier_id, tracked_at) select s.id, tier.id, now() from market.series s, tier`;
  const state = { event: 'behind', topic: 'behind', since: 1, settleMs: 0, text: 'Less fresh.', over: '' } as const;
  const page = await createTestDashboard(database.url, { states: () => [state], env: ENV });
  try {
    const text = textOf(await page.page('/'));
    const perDay = Number(
      /Less fresh\. ([\d,]+) requests more per day See the quota/.exec(text)?.[1]?.replace(',', ''),
    );
    // One request for each series at each tick of five minutes, 28,800 in all. The plan has some hundreds.
    expect(perDay).toBeGreaterThan(28_000);
    expect(perDay).toBeLessThan(28_800);
  } finally {
    await page.close();
  }
});

describe('failed backfills', () => {
  const span = '[2020-01-01,2021-01-01)';

  test('of the last week are listed even behind hundreds of newer ones, and only those of the service can be resumed here', async () => {
    const failed = { state: 'failed', span, finishedAt: systemClock.now() - DAY };
    const ours = await seedBackfill({ ...failed, message: 'no answer' });
    const command = await seedBackfill({ ...failed, isDetached: false });
    const old = await seedBackfill({ ...failed, finishedAt: systemClock.now() - 8 * DAY });
    await database.sql`
      insert into ops.backfill (requested_at, finished_at, state, spec, span, interval, quote, planned_requests, is_detached, coin_ids)
      select now(), now(), 'done', '{}', ${span}::tstzrange, '24h', 'usd', 1, true, '{btc-bitcoin}' from generate_series(1, 250)`;
    const page = await createTestDashboard(database.url, { states: () => [], env: ENV });
    const html = await page.page('/');
    await page.close();
    expect(html).toContain(`Backfill ${ours} failed: no answer.`);
    expect(html).toContain(`href="/ui/do/resume?backfill=${ours}"`);
    expect(html).toContain(`href="/ui/backfills/${command}">See the backfill`);
    expect(html).not.toContain(`/ui/do/resume?backfill=${command}"`);
    expect(html).not.toContain(`Backfill ${old} failed`);
  });

  test('that more requests cannot mend are not called broken, and have no button without effect', async () => {
    const message = 'left: 39 slots history limit';
    const id = await seedBackfill({ state: 'failed', span, finishedAt: systemClock.now() - HOUR, message });
    expect(await look('/ui/quota')).toContain(' 1 backfill failed ');
    await database.sql`update ops.backfill set left_requests = 0`;
    const home = await look();
    expect(home).toContain(
      `Backfill ${id} ended incomplete, and more requests would not change that: ${message}. See the backfill`,
    );
    expect(home).not.toMatch(/Broken|Resume|backfill failed /);
  });

  test('are counted when there are too many to list', async () => {
    for (let i = 0; i < 8; i++) await seedBackfill({ state: 'failed', span, finishedAt: systemClock.now() - HOUR });
    expect(await look()).toMatch(/3 more backfills failed in the last seven days\. 21 requests See the backfills/);
  });
});

test('a page that does not show all open backfills says how many there are', async () => {
  await database.sql`
    insert into ops.backfill (requested_at, state, spec, span, interval, quote, planned_requests, is_detached, coin_ids)
    select now(), 'queued', '{}', tstzrange('2020-01-01', '2021-01-01'), '24h', 'usd', 1, true, '{btc-bitcoin}' from generate_series(1, 230)`;
  expect(await look()).toContain('20 of 230. See all');
  expect(await look('/ui/backfills')).toContain('200 of 230. Show more');
  expect(await look('/ui/backfills?shown=1000')).not.toContain('of 230');
});
