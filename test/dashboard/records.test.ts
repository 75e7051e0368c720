/** The screens of long lists: requests, one request, notices. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { tables } from '../../src/store/connection/tables.ts';
import { notice } from '../../src/store/schema/service.ts';
import { recordCoins } from '../../src/store/snapshot/coin.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { seedSeries } from '../support/warehouse.ts';
import { ACCOUNT, NOW, type Visit, visit } from './visiting.ts';

const MINUTE = 60_000;
const DAY = 1440 * MINUTE;
const SCRIPT = '<script>alert(1)</script>';

let database: TestDatabase;
let page: Visit;

beforeEach(async () => {
  database = await createTestDatabase();
  page = await visit(database);
});
afterEach(async () => {
  await page.close();
  await database.drop();
  expect(page.errors).toEqual([]);
});

/** `n` requests, one a minute up to now. Every tenth is refused with `message`. */
async function seedRequests(
  n: number,
  { series = null as number | null, endpoint = 'ohlcv', message = 'no such coin' } = {},
) {
  await database.sql`
    insert into ops.fetch (sent_at, as_of, account_id, endpoint, series_id, span, attempt, status, outcome, duration_ms, rows, stored,
      revised, quarantined, bytes, body_sha256, message)
    select at, at, ${ACCOUNT}, ${endpoint}, ${series}::int, tstzrange('2020-01-01', '2021-01-01'), 1,
      case when i % 10 = 0 then 404 else 200 end, case when i % 10 = 0 then 'unknown id' else 'stored' end, 120, 366, 300, 7, 0, 70000,
      sha256(i::text::bytea), case when i % 10 = 0 then ${message}::text end
    from generate_series(1, ${n}::int) i, lateral (select ${NOW}::timestamptz - (${n}::int - i) * interval '1 minute' as at) t`;
}

function rowsOf(html: string): number {
  return (
    html
      .split(/<tbody[^>]*>/)[1]
      ?.split('</tbody>')[0]
      ?.split(/<tr[^>]*>/).length ?? 1
  );
}

describe('the list of requests', () => {
  test('shows the newest first, with all that is known of each, and a link to its page', async () => {
    const series = await seedSeries(database.sql, {
      coinId: 'btc-bitcoin',
      interval: '24h',
      wanted: [],
      covered: [],
      candles: [],
    });
    await seedRequests(10, { series });
    const { text, html } = await page.look('/ui/requests');
    expect(text).toMatch(
      /now \| btc-bitcoin 24h usd 2020-01-01 … 2021-01-01 \| ohlcv \| unknown id : no such coin \| 404 \| 120 \| 70 kB \| 366 \| 300 \| 7 \|/,
    );
    expect(html).toContain('href="/ui/requests?id=10"');
    const one = await page.look('/ui/requests?id=10');
    expect(one.text).toContain('HTTP status 404 Outcome unknown id Message no such coin Duration 120 ms');
    // The page shows the whole digest, the list its beginning.
    const digest = /SHA-256 of the body ([0-9a-f]{64})/.exec(one.text)![1]!;
    expect(html).toContain(`title="${digest}">${digest.slice(0, 12)}<`);
    expect((await page.look('/ui/requests?id=11')).status).toBe(404);
  });

  test('shows a page at a time and each request once, and links back to the newest', async () => {
    await seedRequests(120);
    const found: string[] = [];
    let path: string | undefined = '/ui/requests';
    while (path !== undefined) {
      const { html } = await page.look(path);
      found.push(...[...html.matchAll(/requests\?id=(\d+)"/g)].map((match) => match[1]!));
      path = /<a class="button" rel="next" href="([^"]+)"/.exec(html)?.[1]?.replaceAll('&amp;', '&');
    }
    expect(found).toEqual(Array.from({ length: 120 }, (_, i) => String(120 - i)));
    expect((await page.look('/ui/requests?before=50')).text).toContain('Back to the newest');
  });

  test('is filtered by outcome, endpoint, coin and time, which the address contains', async () => {
    const series = await seedSeries(database.sql, {
      coinId: 'btc-bitcoin',
      interval: '24h',
      wanted: [],
      covered: [],
      candles: [],
    });
    await seedRequests(10, { series });
    await seedRequests(10, { endpoint: 'tickers' });
    const count = async (query: string) => rowsOf((await page.look(`/ui/requests?${query}`)).html) - 1;
    expect(await count('outcome=stored')).toBe(18);
    expect(await count('outcome=not+stored')).toBe(2);
    expect(await count('outcome=unknown+id&endpoint=tickers')).toBe(1);
    expect(await count('coin=btc-bitcoin')).toBe(10);
    expect(await count('coin=btc-bitcoin&outcome=unknown+id')).toBe(1);
    expect(await count('coin=eth-ethereum')).toBe(0);
    expect(await count('from=2030-05-15T09:55&to=2030-05-15T10:00')).toBe(10);
    expect(await count('outcome=&endpoint=&coin=&from=2030-05-15T09:58:30&to=')).toBe(4);
    const { html } = await page.look('/ui/requests?outcome=unknown+id&coin=btc-bitcoin&from=2030-05-15');
    expect(html).toContain('<option value="unknown id" selected');
    expect(html).toContain('value="btc-bitcoin"');
    expect(html).toContain('value="2030-05-15"');
  });

  describe('filtered by a coin', () => {
    const AT = Date.UTC(2030, 0, 1);
    const coin = (id: string, name: string, symbol: string, rank: number, is_active = true) =>
      ({ id, name, symbol, rank, is_active, is_new: false, type: 'coin' }) as const;
    beforeEach(async () => {
      const pol = await seedSeries(database.sql, {
        ...{ coinId: 'pol-polygon', interval: '24h', wanted: [], covered: [], candles: [] },
      });
      const coins = [
        coin('pol-polygon', 'Polygon Ecosystem', 'POL', 25),
        coin('matic-polygon', 'Polygon', 'MATIC', 0, false),
        coin('uni-uniswap', 'Uniswap', 'UNI', 30),
        coin('uni-unicorn', 'Unicorn', 'UNI', 900),
      ];
      await recordCoins(database.sql, coins, AT);
      await database.sql`
        insert into market.coin_rename (old_id, new_id, renamed_at, source) values ('matic-polygon', 'pol-polygon', ${AT}, 'coins')`;
      await seedRequests(10, { series: pol });
      await seedRequests(5, { endpoint: 'coin' });
      await database.sql`update ops.fetch set subject = 'matic-polygon' where endpoint = 'coin'`;
      await seedRequests(3, { endpoint: 'exchange' });
      await database.sql`update ops.fetch set subject = 'uni' where endpoint = 'exchange'`;
    });

    test.each(['pol-polygon', 'POL', 'pol', 'Polygon Ecosystem', 'matic-polygon', 'MATIC'])(
      'finds it by its symbol, name, id or old id: %s',
      async (text) => {
        const seen = await page.look(`/ui/requests?${new URLSearchParams({ coin: text })}`);
        expect(rowsOf(seen.html) - 1).toBe(15);
        expect(seen.text).toContain('Requests of Polygon Ecosystem ( pol-polygon ).');
        expect(seen.html).toContain(`value="${text}"`);
        expect(seen.text).toContain(`newest first: coin ${text}`);
      },
    );

    test('links to each candidate with the same filter when the text can mean several coins', async () => {
      const { text, html, status } = await page.look('/ui/requests?coin=UNI&outcome=stored&before=9');
      expect(status).toBe(200);
      expect(text).toContain(
        '"UNI" can mean several coins. Choose one: Uniswap (UNI) uni-uniswap Unicorn (UNI) uni-unicorn',
      );
      expect(html).toContain('href="/ui/requests?coin=uni-uniswap&amp;outcome=stored"');
      expect(text).not.toContain('No request matches');
      expect((await page.look('/ui/requests?coin=uni-uniswap')).text).toContain('No request matches.');
    });

    test('says so when the coin is unknown', async () => {
      const { text, html, status } = await page.look('/ui/requests?coin=%3Cb%3Enobody');
      expect([status, text]).toEqual([
        200,
        expect.stringContaining('No coin matches "<b>nobody" by its symbol, name, id or an old id.'),
      ]);
      expect(html).not.toContain('<b>');
    });

    test('does not include an exchange or tag of the same name, which has its own link', async () => {
      const { html } = await page.look('/ui/requests?endpoint=exchange');
      expect(html).toContain('href="/ui/requests?endpoint=exchange&amp;about=uni"');
      const about = await page.look('/ui/requests?about=uni');
      expect(rowsOf(about.html) - 1).toBe(3);
      expect(about.html).toContain('name="about" value="uni"');
    });
  });

  test('says how far back a filter has looked, and goes on from there', async () => {
    await seedRequests(1, { endpoint: 'global' });
    await seedRequests(100_500);
    const { text, html } = await page.look('/ui/requests?endpoint=global');
    expect(text).toContain('No request matches. Searched 100,000 requests, back to');
    const next = /rel="next" href="([^"]+)"/.exec(html)![1]!.replaceAll('&amp;', '&');
    expect(next).toBe('/ui/requests?endpoint=global&before=502');
    const further = await page.look(next);
    expect(further.html).toContain('requests?id=1"');
    expect(further.text).not.toContain('Searched');
  });

  test('no request is of a backfill whose number is too high to exist', async () => {
    await seedRequests(1);
    const { status, text } = await page.look('/ui/requests?backfill=99999999999');
    expect([status, text]).toEqual([200, expect.stringContaining('No request matches')]);
  });

  test('refuses a wrong address with the field and what would be right', async () => {
    for (const [query, message] of [
      ['id=x', 'id must be a whole number above 0, got "x".'],
      ['before=-1', 'before must be a whole number above 0, got "-1".'],
      [
        'from=yesterday',
        'from must be a date like 2024-01-31 or a time in UTC like 2024-01-31T12:00, got "yesterday".',
      ],
      ['from=2030-13-01', 'from must be a date'],
      ['from=2030', 'from must be a date'],
      ['from=2030-02-31', 'from must be a date'],
      ['to=2030-02-30T12:00', 'to must be a date'],
      ['from=2030-02-01&to=2030-01-01', 'from must be before to, got 2030-02-01 00:00Z and 2030-01-01 00:00Z.'],
      [`coin=${'x'.repeat(101)}`, 'coin must be one line of at most 100 characters, got 101.'],
      ['outcome=a%0Ab', 'outcome must be one line'],
    ] as const) {
      const { status, text } = await page.look(`/ui/requests?${query}`);
      expect([query, status]).toEqual([query, 400]);
      expect(text).toContain(message);
    }
  });

  test('shows hostile texts as plain text', async () => {
    await seedRequests(10, { message: SCRIPT, endpoint: SCRIPT });
    for (const path of [
      '/ui/requests',
      '/ui/requests?id=10',
      `/ui/requests?endpoint=${encodeURIComponent(SCRIPT)}&coin=%22%3E%3Cb%3E`,
    ]) {
      const { html } = await page.look(path);
      expect(html).not.toContain('<script>alert');
      expect(html).not.toContain('"><b>');
    }
    expect((await page.look('/ui/requests')).text).toContain(SCRIPT);
  });
});

describe('the list of notices', () => {
  async function seedNotice(row: Partial<typeof notice.$inferInsert>) {
    const filled = { topic: `t${Math.random()}`, event: 'quota', text: 'x', raisedAt: NOW, ...row } as const;
    await tables(database.sql).insert(notice).values(filled);
  }

  test('shows ongoing states first, and whether each notice was sent or why not', async () => {
    await seedNotice({ event: 'stuck', text: 'Nothing goes on.', beganAt: NOW - 2 * DAY, sentAt: NOW - DAY });
    await seedNotice({ text: '80 % is used.', sentAt: NOW - MINUTE });
    await seedNotice({ text: 'given up', message: 'hook says 410', attempts: 7 });
    await seedNotice({ text: 'later', dueAt: NOW + 5 * MINUTE, message: 'hook is away', attempts: 1 });
    await seedNotice({ text: 'fresh', dueAt: NOW });
    await seedNotice({ event: 'behind', text: SCRIPT, beganAt: NOW - DAY, endedAt: NOW - DAY / 2, sentAt: NOW });
    const { text, html } = await page.look('/ui/notices');
    expect(html).not.toContain('<script>alert');
    const [, lasts, was] = /Current problems (.*) Other notices (.*)/.exec(text)!;
    expect(lasts).toContain('stuck | Nothing goes on. | since 2030-05-13 10:00Z, 2d | sent 2030-05-14 10:00Z');
    expect(was).toContain(`behind | ${SCRIPT} | 12h, until 2030-05-14 22:00Z | sent`);
    expect(was).toContain('fresh | | waiting to be sent');
    expect(was).toMatch(/later \| \| not sent yet, tried once, next in [45]m[^:]*: hook is away/);
    expect(was).toContain('given up | | not sent, given up after 7 attempts: hook says 410');
    expect(was).toContain('80 % is used. | | sent 2030-05-15 09:59Z');
    expect(was!.indexOf('behind')).toBeLessThan(was!.indexOf('80 %'));
  });

  test('shows 10,000 notices a page at a time, each page as small as with ten', async () => {
    await database.sql`
      insert into ops.notice (event, topic, text, raised_at, sent_at)
      select 'quota', 't' || i, 'notice ' || i, now(), now() from generate_series(1, 10000) i`;
    const first = await page.look('/ui/notices');
    expect(first.text).toContain('notice 10000 |');
    expect(rowsOf(first.html) - 1).toBe(50);
    expect(first.html.length).toBeLessThan(60_000);
    const { text } = await page.look('/ui/notices?before=51');
    expect(text).toContain('notice 50 |');
    expect(text).toContain('notice 1 |');
    expect(text).not.toContain('Older notices');
    expect((await page.look('/ui/notices?before=x')).status).toBe(400);
  });
});
