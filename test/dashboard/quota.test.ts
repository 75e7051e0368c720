/** The screens of the quota, of one backfill and of the system, and what Home says that the warehouse lacks. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { recordCoins } from '../../src/store/snapshot/coin.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { ACCOUNT, NOW, type Visit, visit } from './visiting.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

let database: TestDatabase;
let page: Visit;

beforeEach(async () => {
  database = await createTestDatabase();
  page = await visit(database, { CHANDLER_PLAN: 'free' });
});
afterEach(async () => {
  await page.close();
  await database.drop();
  expect(page.errors).toEqual([]);
});

/** `n` requests a day from the first of the month up to now. Every second one belongs to backfill 1. */
async function seedMonth(n: number) {
  await database.sql`
    insert into ops.fetch (sent_at, as_of, account_id, endpoint, backfill_id, attempt, status, outcome, duration_ms, rows, stored, revised,
      quarantined, bytes)
    select at, at, ${ACCOUNT}, 'ohlcv', case when i % 2 = 0 then 1 end, 1, 200, 'stored', 100, 366, 366, 0, 0, 70000
    from generate_series(0, ${n * 14 - 1}::int) i,
      lateral (select timestamptz '2030-05-01Z' + i * interval '1 day' / ${n}::int as at) t`;
}

/** A ledger with this many requests of the month spent. */
async function seedLedger(spent: number) {
  await database.sql`
    insert into ops.quota (account_id, month_start, month_spent, day_start, day_spent)
    values (${ACCOUNT}, '2030-05-01Z', ${spent}, '2030-05-15Z', 0)
    on conflict (account_id) do update set month_start = '2030-05-01Z', month_spent = ${spent}`;
}

async function seedBackfill(row: { readonly state: string; readonly message?: string; readonly by?: string }) {
  await recordCoins(
    database.sql,
    [{ id: 'btc-bitcoin', name: 'Bitcoin', symbol: 'BTC', rank: 1, is_new: false, is_active: true, type: 'coin' }],
    NOW - DAY,
  );
  const chunks = {
    ...{ inProgress: 2, queued: 30, retrying: 1, retryFrom: null, retryTo: null },
    waits: [
      {
        ...{ coinId: 'btc-bitcoin', from: '2020-01-01T00:00:00.000Z', to: '2021-01-01T00:00:00.000Z' },
        ...{ until: new Date(NOW + HOUR).toISOString(), reason: 'limited', attempts: 3 },
      },
    ],
  };
  const isOver = row.state === 'failed' || row.state === 'done';
  const [made] = await database.sql<{ id: number }[]>`
    insert into ops.backfill (requested_at, started_at, finished_at, state, spec, span, interval, quote, planned_requests, owner, heartbeat_at,
      is_detached, coin_ids, left_requests, requested_by, message, chunks, finish_at, finish_from, finish_to, finish_change, finish_changed_at)
    values (${NOW - 2 * HOUR}, ${NOW - HOUR}, ${isOver ? NOW - 60_000 : null}, ${row.state}, '{}', tstzrange('2020-01-01', '2024-01-01'), '24h', 'usd',
      4, 'host:1', ${NOW}, true, '{btc-bitcoin}', 33, ${row.by ?? 'me@here'}, ${row.message ?? null}, ${database.sql.json(chunks)}, ${NOW + HOUR},
      ${NOW + HOUR}, ${NOW + 2 * HOUR}, 'the quota is shared', ${NOW - 600_000})
    returning id`;
  return made!.id;
}

describe('the quota page', () => {
  test('shows how the month is used by day and spender, the forecast, the ledger, the schedules and other plans', async () => {
    await seedMonth(100);
    await seedLedger(1_400);
    await database.sql`
      insert into ops.backfill (requested_at, state, spec, span, interval, quote, planned_requests, is_detached, coin_ids, left_requests, requested_by)
      values (${NOW}, 'queued', '{}', tstzrange('2020-01-01', '2024-01-01'), '24h', 'usd', 500, true, '{btc-bitcoin}', 500, '<b>eve</b>')`;
    const { status, text, html } = await page.look('/ui/quota');
    expect(status).toBe(200);
    expect(text).toContain(`Account ${ACCOUNT} , plan free (as configured)`);
    expect(text).toContain('1,400 requests sent, 18,600 of 20,000 left');
    expect(html).toContain('<polygon class="spender-1"');
    // At the end of the second day of May: two hundred requests, half of them for the backfill.
    expect(text).toContain('2030-05-03 00:00Z | 100 | 100 | 19,800 |');
    expect(text).toMatch(
      /tickers \| \*\/15 \* \* \* \* \| 1 \| 96 \| 2,976 \| 14\.9% \| 2030-05-15 10:15Z \| never \|/,
    );
    expect(text).toContain('Queued and running backfills need 500 requests; paused backfills are not counted.');
    expect(text).toMatch(/free \(yours\) \| 20,000 \| 1,000 \|.* the last 1d \| 24h \|/);
    expect(text).toMatch(
      /enterprise \| unlimited \| unlimited \| [\d,]+ \| 0 \| unlimited \| all \| 5m 15m 30m 1h 6h 12h 24h \|/,
    );
    expect(html).not.toContain('style="');
  });

  test('and the top of every page count open backfills in the forecast, as far as the rate and the limit allow', async () => {
    await seedLedger(1_400);
    const backfill = await database.sql`
      insert into ops.backfill (requested_at, state, spec, span, interval, quote, planned_requests, is_detached, coin_ids, left_requests)
      values (${NOW}, 'paused', '{}', tstzrange('2020-01-01', '2024-01-01'), '24h', 'usd', 3000, true, '{btc-bitcoin}', 3000) returning id`;
    const forecasts = async (left: number, state: string, plan = 'free') => {
      // A new process, because the figures are kept for two seconds.
      await page.close();
      page = await visit(database, { CHANDLER_PLAN: plan });
      await database.sql`update ops.backfill set left_requests = ${left}, state = ${state} where id = ${backfill[0]!.id}`;
      const { text, html } = await page.look('/ui/quota');
      return [
        /This month 1,400 .*? Forecast: (.*?) requests sent by then/.exec(text)?.[1],
        /<p>month: [^<]*; forecast: ([^<]*) sent by then<\/p>/.exec(html)?.[1],
        /This day 0 .*? Forecast: (.*?) requests sent by then/.exec(text)?.[1],
      ];
    };
    // At the pace so far, 3,010 requests.
    expect(await forecasts(300, 'paused')).toEqual(['1,400 to 3,010', '1,400 to 3,010', 'about 0']);
    expect(await forecasts(3_000, 'queued')).toEqual(['3,010 to 4,400', '3,010 to 4,400', '0 to 1,000']);
    expect(await forecasts(3_000_000, 'queued')).toEqual(['3,010 to 18,400', '3,010 to 18,400', '0 to 1,000']);
    // In the fourteen hours that are left of the day, ten requests a second.
    expect(await forecasts(3_000_000, 'queued', 'enterprise')).toEqual([
      '3,010 to 3,001,400',
      undefined,
      expect.stringMatching(/^0 to 50[34],\d{3}$/),
    ]);
  });

  test('and every other page show what is left of the day and the month, or that the plan is unlimited', async () => {
    await seedLedger(1_400);
    expect((await page.look('/')).html).toMatch(
      /<p>day: 1,000 of 1,000 requests left, .*<p>month: 18,600 of 20,000 requests left, /,
    );
    await page.close();
    page = await visit(database, { CHANDLER_PLAN: 'enterprise' });
    expect((await page.look('/')).html).toContain('<p>plan enterprise: requests are unlimited</p>');
  });

  test('takes what was left from the ledger where older rows have been removed', async () => {
    await seedMonth(100);
    await seedLedger(1_400);
    await database.sql`delete from ops.fetch where sent_at < '2030-05-11Z'`;
    const { text } = await page.look('/ui/quota');
    // The day before yesterday is shown as if nothing had been removed.
    expect(text).toMatch(/2030-05-13 00:00Z \| 100 \| 100 \| 18,800 \|/);
    expect(text).toContain(
      'Chandler has no records of 1,000 requests that it counted: it could not send them in time, it removed the records, or has not written them yet.',
    );
  });

  test('compares the plans: spent requests are not left in the present one, and a plan without a queued interval is not possible', async () => {
    await seedLedger(5_000);
    const backfill = (state: string, interval: string, left: number) => database.sql`
      insert into ops.backfill (requested_at, state, spec, span, interval, quote, planned_requests, is_detached, coin_ids, left_requests)
      values (${NOW}, ${state}, '{}', tstzrange('2020-01-01', '2024-01-01'), ${interval}, 'usd', 500, true, '{btc-bitcoin}', ${left})`;
    await backfill('queued', '5m', 10);
    await backfill('paused', '24h', 9_000);
    const { text } = await page.look('/ui/quota');
    expect(text).toContain('Queued and running backfills need 10 requests');
    const [, sent, left, done] =
      /free \(yours\) \| 20,000 \| 1,000 \| [\d,]+ \| ([\d,]+) \| ([\d,]+) \| [^|]+\| [^|]+\| ([^|]+) \|/.exec(text)!;
    expect([sent, done]).toEqual(['5,000', 'not possible']);
    expect(Number(left!.replaceAll(',', ''))).toBeLessThanOrEqual(15_000);
    expect(text).toMatch(/enterprise \|.* 5m 15m 30m 1h 6h 12h 24h \| (2030|no limit)/);
  });

  test('estimates the use of the month from a sample when there are very many requests', async () => {
    await seedMonth(5_000);
    const { text } = await page.look('/ui/quota');
    expect(text).toContain('estimated from every 12th request');
    const [, schedules, backfill] = /2030-05-11 00:00Z \| ([\d,]+) \| ([\d,]+) \|/.exec(text)!;
    for (const counted of [schedules!, backfill!]) {
      const n = Number(counted.replaceAll(',', ''));
      expect(n).toBeGreaterThan(23_000);
      expect(n).toBeLessThan(27_000);
    }
  });
});

describe('the page of a backfill', () => {
  test('says why it does not advance, what it cost, where its chunks are and what failed', async () => {
    const id = await seedBackfill({ state: 'queued', by: '<script>alert(1)</script>' });
    await database.sql`
      insert into ops.fetch (sent_at, as_of, account_id, endpoint, backfill_id, attempt, status, outcome, duration_ms, rows, stored, revised,
        quarantined, bytes, message)
      select ${NOW - HOUR}, ${NOW}, ${ACCOUNT}, 'ohlcv', ${id}, i, 502, case when i = 6 then 'unavailable' else 'stored' end, 100, 366, 366, 0, 0, 70,
        case when i = 6 then '<script>alert(2)</script>' end from generate_series(1, 6) i`;
    const { text, html } = await page.look(`/ui/backfills/${id}`);
    expect(text).toContain(`Backfill ${id} 24h usd, 2020-01-01 … 2024-01-01, 1 coin`);
    expect(text).toContain('No service is running. Start one with: chandler service');
    expect(text).toContain('6 sent of at least 4 planned, 2 more than the minimum, 33 left');
    expect(text).toContain('between 2030-05-15 11:00Z and 2030-05-15 12:00Z');
    expect(text).toContain('10m ago: the quota is shared');
    expect(text).toContain('2 in progress, 30 queued, 1 waiting for a retry');
    expect(text).toContain(
      'btc-bitcoin | 2020-01-01 … 2021-01-01 | 2030-05-15 11:00Z | 3 | the upstream asked for a pause |',
    );
    expect(text).toContain('6 | 502 | unavailable | <script>alert(2)</script> |');
    expect(html).not.toContain('<script>alert');
    expect(html).toContain(`href="/ui/do/pause?backfill=${id}"`);
    expect(html).toContain(`href="/ui/requests?backfill=${id}"`);
  });

  test('offers to resume one that failed, is a 404 for an unknown number and a 400 for a wrong one', async () => {
    const id = await seedBackfill({ state: 'failed', message: 'no answer' });
    const { text, html } = await page.look(`/ui/backfills/${id}`);
    expect(text).toContain('It has ended (failed): no answer');
    expect(html).toContain(`href="/ui/do/resume?backfill=${id}"`);
    expect((await page.look('/ui/backfills/99')).status).toBe(404);
    const wrong = await page.look('/ui/backfills/0x1');
    expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining('got "0x1"')]);
  });
});

describe('the system page', () => {
  test('shows versions, services, connections, sizes and the changes with their users, and settings by name only', async () => {
    await database.sql`
      insert into ops.instance (owner, roles, started_at, heartbeat_at) values ('host:7', '{scheduler,http}', ${NOW - DAY}, ${NOW})`;
    await database.sql`
      insert into ops.audit (at, actor, command, ended_at, settings) values
        (${NOW - HOUR}, 'me@here', 'chandler service', ${NOW}, '{"CHANDLER_PLAN": "free", "CHANDLER_LISTEN": ":1"}'),
        (${NOW}, 'me@here', 'chandler service', ${NOW + 2000}, '{"CHANDLER_PLAN": "hidden-value", "CHANDLER_LISTEN": ":1"}')`;
    const { text, html } = await page.look('/ui/system');
    expect(text).toMatch(/Postgres 1\d\.\d+( \(\S+ \S+\))? Schema \d{4}_\w+ Database/);
    expect(text).toContain('host:7 | scheduler, http | 2030-05-14 10:00Z | now |');
    expect(text).toMatch(/market\.candle \| |ops\.fetch \| /);
    expect(text).toMatch(/chandler test \| \d+ \|/);
    expect(text).toContain('me@here | chandler service | settings changed: CHANDLER_PLAN; done in 2 s |');
    expect(html).not.toContain('hidden-value');
  });

  test('shows the checks of chandler doctor that need no request', async () => {
    await expect.poll(async () => (await page.look('/ui/system')).text).toMatch(/time zone \| (ok|warn) \|/);
    const { text } = await page.look('/ui/system');
    expect(text).toContain('key | ok | none: anonymous |');
    expect(text).toContain('plan | ok | free |');
    const [sent] = await database.sql<{ n: number }[]>`select count(*)::int as n from ops.fetch`;
    expect(sent!.n).toBe(0);
  });
});

describe('Home', () => {
  test('shows the history limits that requests met', async () => {
    await database.sql`
      insert into market.refusal (account_plan, interval, reason, message, refused_at, depth)
      values ('free', '24h', 'history limit', 'upgrade <b>now</b>', ${NOW - HOUR}, interval '1 day')`;
    const { text, html } = await page.look('/');
    expect(text).toContain('Requests reached a history limit of the plan free, which gives the last');
    expect(text).toContain('upgrade <b>now</b>');
    expect(html).toContain('href="/ui/quota#plans">history limit</a>');
  });
});
