/** The coverage map shows the same as `market.gaps`, in the order and with the filter of its address. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { COVERAGE_STATES } from '../../src/views/dashboard/coverage-map.ts';
import { GAP_REASONS } from '../../src/views/operations/gaps.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { type CoveragePages, makeEveryReason, openCoveragePages, TODAY } from './coverage-world.ts';

/** The whole time of the data. */
const WIDE = { from: new Date(TODAY - 70 * DAY).toISOString(), to: new Date(TODAY + DAY).toISOString(), rows: 100 };
const HALF_AN_HOUR = 1_800;

let database: TestDatabase;
let pages: CoveragePages;
beforeAll(async () => {
  database = await createTestDatabase();
  await makeEveryReason(database.sql);
  pages = openCoveragePages(database.sql);
});
afterAll(() => database?.drop());

/** `coin interval quote: reason from..to`, in steps since the begin of the window, as the page draws it. */
async function drawn(step: number, change: object = {}): Promise<string[]> {
  const { rows, states, from } = await pages.data({ ...WIDE, step, ...change });
  expect(states).toHaveLength(COVERAGE_STATES.length);
  return rows.flatMap(({ coinId, interval, quote, stretches }) =>
    Array.from({ length: stretches.length / 3 }, (_, i) => {
      const [state, first, end] = stretches.slice(3 * i, 3 * i + 3) as [number, number, number];
      const at = (n: number) => from + n * step;
      return `${coinId} ${interval} ${quote}: ${COVERAGE_STATES[state]} ${at(first)}..${at(end)}`;
    }),
  );
}

/** The same computed by Postgres, with each gap widened to steps. */
async function inSql(step: number, from: number, to: number): Promise<string[]> {
  const rows = await database.sql<{ text: string }[]>`
    select format('%s %s %s: %s %s..%s', coin_id, interval, quote, reason, lower(r), upper(r)) as text
    from (
      select coin_id, interval, quote, reason, range_agg(int8range(
        (floor(extract(epoch from greatest(gap_from, to_timestamp(${from}::float8))) / ${step}::int) * ${step}::int)::bigint,
        (ceil(extract(epoch from least(gap_to, to_timestamp(${to}::float8))) / ${step}::int) * ${step}::int)::bigint)) as spans
      from market.gaps where gap_to > to_timestamp(${from}::float8) and gap_from < to_timestamp(${to}::float8) group by 1, 2, 3, 4
    ) g, unnest(g.spans) r`;
  return rows.map(({ text }) => text);
}

const coinsOf = async (query: string) => {
  const { rows } = await pages.data({ ...WIDE, step: 86_400, ...Object.fromEntries(new URLSearchParams(query)) });
  return rows.map(
    ({ coinId, interval, quote }) =>
      `${coinId.replace('-coin', '')}${interval === '24h' && quote === 'usd' ? '' : ` ${interval} ${quote}`}`,
  );
};

describe('the map shows every reason exactly where market.gaps has it', () => {
  it('for series that have all reasons', async () => {
    const [{ reasons }] = (await database.sql`select array_agg(distinct reason) as reasons from market.gaps`) as [
      { reasons: string[] },
    ];
    expect(reasons.sort()).toEqual([...GAP_REASONS].sort());
  });

  it.each([
    ['to half an hour', HALF_AN_HOUR, WIDE.from, WIDE.to],
    ['to three days, where small ones become as wide as that, and melt together', 3 * 86_400, WIDE.from, WIDE.to],
    [
      'of a part of the time, from and to within gaps',
      3_600,
      new Date(TODAY - 28 * DAY).toISOString(),
      new Date(TODAY - 22 * DAY).toISOString(),
    ],
  ])('in steps: %s', async (_, step, from, to) => {
    const gaps = (await drawn(step, { from, to })).filter((line) => !/: (final|told once) /.test(line));
    const begin = Math.floor(Date.parse(from) / 1000 / step) * step;
    const end = Math.ceil(Date.parse(to) / 1000 / step) * step;
    const expected = await inSql(step, begin, end);
    expect(expected.length).toBeGreaterThan(10);
    expect(gaps.sort()).toEqual(expected.sort());
  });

  it('beside the final stretches and those that one answer reported as empty', async () => {
    const lines = (await drawn(86_400, { coin: 'holes' })).map((line) =>
      line.replace(/\d{10}/g, (at) => String((Number(at) * 1000 - TODAY) / DAY)),
    );
    expect(lines).toEqual([
      'holes-coin 24h usd: final -60..-20',
      'holes-coin 24h usd: final -15..-10',
      'holes-coin 24h usd: told once -50..-48',
      'holes-coin 24h usd: not asked yet -20..-15',
    ]);
  });
});

describe('the order of the map', () => {
  it('follows the ranks, with coins without a rank last', async () => {
    expect(await coinsOf('')).toEqual([
      ...['complete', 'unasked', 'young', 'doubtful', 'broken', 'odd', 'unknown', 'closed', 'wrong', 'mixed'],
      ...['mixed 6h btc', 'mixed 1h usd', 'holes'],
    ]);
  });
  it('follows the names', async () => {
    expect((await coinsOf('sort=name')).slice(0, 4)).toEqual(['broken', 'closed', 'complete', 'doubtful']);
  });
  it('begins with the series that miss the longest time, as market.gaps counts it', async () => {
    const worst = await coinsOf('sort=worst');
    expect(worst.slice(0, 2)).toEqual(['mixed 6h btc', 'mixed 1h usd']);
    expect(worst.slice(-2)).toEqual(['holes', 'complete']);
  });
  it('groups by tier: named coins, all coins, and series that nothing tracks', async () => {
    expect((await coinsOf('group=tier')).slice(0, 3)).toEqual(['wrong', 'odd', 'complete']);
  });
  it('is divided into pages', async () => {
    const all = await coinsOf('');
    expect([
      ...(await coinsOf('rows=5')),
      ...(await coinsOf('row=5&rows=5')),
      ...(await coinsOf('row=10&rows=5')),
    ]).toEqual(all);
    expect(await coinsOf('row=99')).toEqual([]);
  });
  it('includes a new series at once, and changes with the missing time after a while', async () => {
    const { sql } = database;
    await coinsOf('sort=worst&interval=12h');
    await sql`insert into market.series (coin_id, quote, interval, wanted) values
      ('odd-coin', 'usd', '12h', tstzmultirange(tstzrange('2024-01-01', '2024-01-03'))),
      ('holes-coin', 'usd', '12h', tstzmultirange(tstzrange('2024-01-01', '2024-01-02')))`;
    expect(await coinsOf('sort=worst&interval=12h')).toEqual(['odd 12h usd', 'holes 12h usd']);
    await sql`update market.series set covered = wanted where coin_id = 'odd-coin' and interval = '12h'`;
    pages.later(120_000);
    expect(await coinsOf('sort=worst&interval=12h')).toEqual(['holes 12h usd', 'odd 12h usd']);
    await sql`delete from market.series where interval = '12h'`;
    pages.later(120_000);
  });
});

describe('the filter of the map', () => {
  it.each(GAP_REASONS)('by "%s" selects the series that have this reason in market.gaps', async (reason) => {
    const rows = await database.sql<{ text: string }[]>`
      select distinct coin_id || ' ' || interval || ' ' || quote as text from market.gaps where reason = ${reason}`;
    const { rows: shown } = await pages.data({ ...WIDE, step: 86_400, reason });
    expect(rows.length).toBeGreaterThan(0);
    expect(shown.map(({ coinId, interval, quote }) => `${coinId} ${interval} ${quote}`).sort()).toEqual(
      rows.map(({ text }) => text).sort(),
    );
  });
  it('selects series with slots that one answer reported as empty', async () => {
    expect(await coinsOf('reason=told+once')).toEqual(['holes']);
  });
  it('selects by interval, quote, and a part of a name, in which pattern characters have no special meaning', async () => {
    expect(await coinsOf('interval=1h')).toEqual(['mixed 1h usd']);
    expect(await coinsOf('quote=btc')).toEqual(['mixed 6h btc']);
    expect(await coinsOf('coin=NKNO')).toEqual(['unknown']);
    expect(await coinsOf('coin=%25')).toEqual([]);
  });
});

describe('the page of the map', () => {
  it('shows the same slots, gaps and reasons without a script', async () => {
    const { status, text } = await pages.get('/ui/coverage?coin=closed');
    expect(status).toBe(200);
    expect(text).toContain('Rows 1 to 1 of 1');
    expect(text).toContain('<a href="/ui/coins/closed-coin?interval=24h&amp;quote=usd">CLOSED Closed</a>');
    expect(text).toMatch(/refused: this account may not read it: 4 slots in 1 gap, \d{4}-\d\d-\d\d to/);
    expect(text).toMatch(/not asked yet: 6 slots in 2 gaps/);
    expect(text).toMatch(/<td class="num"[^>]*>50<\/td><td class="num"[^>]*>40<\/td>.*<td class="num"[^>]*>10<\/td>/);
  });
  it('links to the rows before and after, with the same filter', async () => {
    const { text } = await pages.get('/ui/coverage?sort=name&row=3');
    expect(text).toContain('Rows 4 to 13 of 13');
    expect(text).toContain('<a href="/ui/coverage?sort=name">Previous rows</a>');
    const marks =
      'cursor=1%2C2024-01-01T00%3A00%3A00.000Z&selected=1%2C2%2C2024-01-01T00%3A00%3A00.000Z%2C2024-02-01T00%3A00%3A00.000Z';
    expect((await pages.get(`/ui/coverage?${marks}&row=3`)).text).toContain(
      `<a href="/ui/coverage?${marks.replace('&', '&amp;')}">Previous rows</a>`,
    );
    expect((await pages.get('/ui/coverage?row=99')).text).toContain('There is no row 100: there are 13 rows.');
    expect((await pages.get('/ui/coverage?coin=nobody')).text).toContain('No series matches.');
  });
  it('shows a hostile coin name as text', async () => {
    const { sql } = database;
    await sql`update market.coin set name = '<script>alert(1)</script>', symbol = '"><img src=x>' where id = 'odd-coin'`;
    const { text } = await pages.get('/ui/coverage?coin=odd');
    expect(text).toContain('&lt;script&gt;alert(1)');
    expect(text).not.toMatch(/<script>|<img/);
  });
});

describe('an address with a wrong value is refused', () => {
  it.each([
    ['sort=best', 'sort must be one of rank, name, worst, got &quot;best&quot;.'],
    ['group=coin', 'group must be one of none, tier, got &quot;coin&quot;.'],
    ['reason=bored', 'reason must be one of told twice, told once, not asked yet'],
    ['interval=7m', 'interval must be like 24h, 1h or prices-1d, got &quot;7m&quot;.'],
    ['quote=eur', 'quote must be usd or btc, got &quot;eur&quot;.'],
    ['row=-1', 'row must be a whole number from 0'],
    ['from=yesterday', 'from must be a date like 2024-01-31'],
    ['to=2024-02-31', 'to must be a date like 2024-01-31'],
    ['to=2201-01-01', 'to must be a date between 1970 and 2200'],
    ['from=2024-02-01&to=2024-01-01', 'from must be before to'],
    ['cursor=12', 'cursor must be the number of a series and a time, like 12,2024-01-31T12:00Z, got &quot;12&quot;.'],
    ['cursor=a,2024-01-01', 'cursor must be a whole number from 1 to 2147483647, got &quot;a&quot;.'],
    ['cursor=1,yesterday', 'cursor must be a date like 2024-01-31'],
    ['cursor=1,2024-02-31T12:00Z', 'cursor must be a date like 2024-01-31'],
    ['selected=1,2,2024-01-01', 'selected must be two numbers of series and two times, like'],
    ['selected=1,2,2024-01-02,2024-01-01', 'selected must have its earlier time first'],
    ['selected=1,2,,2024-01-01', 'selected must be a date like 2024-01-31'],
    ['selected=1,2,2024-02-01,2024-02-31', 'selected must be a date like 2024-01-31'],
    [`coin=${'x'.repeat(101)}`, 'coin must be one line of at most 100 characters, got 101.'],
    ['coin=a%00b', 'coin must be one line of at most 100 characters, got 3.'],
  ])('%s', async (query, message) => {
    const { status, text } = await pages.get(`/ui/coverage?${query}`);
    expect([status, text]).toEqual([400, expect.stringContaining(message)]);
  });
  it.each([
    ['from=2024-01-01&rows=10&step=60', 'from and to are required, got from=2024-01-01 and to=.'],
    [
      'from=2024-01-01&to=2024-02-01&rows=401&step=60',
      'rows must be a whole number from 1 to 400, got &quot;401&quot;.',
    ],
    ['from=2024-01-01&to=2024-02-01&rows=10&step=0', 'step must be a whole number from 1 to'],
    ['from=2014-01-01&to=2024-02-01&rows=10&step=60', 'the most is 20000'],
  ])('for the data: %s', async (query, message) => {
    const { status, text } = await pages.get(`/ui/coverage/data?${query}`);
    expect([status, text]).toEqual([400, expect.stringContaining(message)]);
  });
});
