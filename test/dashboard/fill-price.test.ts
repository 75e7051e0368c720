/** What the page of a fill says about slots without a final answer: what is requested now, what later, and what never. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { createTestDashboard, type TestDashboard } from '../support/dashboard.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { seedSeries } from '../support/warehouse.ts';

const FROM = Date.UTC(2024, 0, 1);
const day = (n: number) => new Date(FROM + n * DAY).toISOString();
const PATH = `/ui/do/backfill?coin=btc-bitcoin&interval=24h&from=${day(0)}&to=${day(40)}`;

let database: TestDatabase;
let dashboard: TestDashboard;
let series: number;

beforeEach(async () => {
  database = await createTestDatabase();
  dashboard = await createTestDashboard(database.url, { states: () => [], env: { CHANDLER_PLAN: 'enterprise' } });
  series = await seedSeries(database.sql, {
    ...{ coinId: 'btc-bitcoin', interval: '24h', covered: [], candles: [] },
    wanted: [{ from: FROM, to: FROM + 40 * DAY }],
  });
});
afterEach(async () => {
  await dashboard.close();
  await database.drop();
});

async function doubt(claim: string, from: number, to: number, retryAt: number | 'infinity') {
  const at = retryAt === 'infinity' ? database.sql`'infinity'::timestamptz` : database.sql`${retryAt}::timestamptz`;
  await database.sql`
    insert into ops.second_opinion (claim, series_id, span, requested_at, retry_at)
    values (${claim}, ${series}, tstzrange(${day(from)}, ${day(to)}), ${systemClock.now() - 2 * HOUR}, ${at})`;
}

async function look(status = 200): Promise<string> {
  const html = await dashboard.page(PATH, { status });
  return html
    .slice(html.indexOf('<main'))
    .replace(/<[^>]*>/g, ' ')
    .replaceAll('&#39;', "'")
    .replace(/\s+/g, ' ');
}

const minute = (at: number) => `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')}`;

test('the page of a fill requests malformed slots that are due now, and shows later slots with their price', async () => {
  const [soon, later] = [systemClock.now() + 2 * HOUR, systemClock.now() + 5 * HOUR];
  await doubt('malformed', 0, 5, systemClock.now() - HOUR);
  await doubt('malformed', 10, 13, later);
  await doubt('unconfirmed', 20, 21, soon);
  const text = await look();
  expect(text).toContain('Fill 36 slots of 1 coin?');
  expect(text).toContain('It costs 1 request, done');
  expect(text).toMatch(
    new RegExp(
      `Not requested now: 3 slots malformed and 1 slot unconfirmed\\. They wait for a second answer, the first slot until ${minute(soon)}[^.]*\\. This backfill waits until then, and sends about 2 more requests\\.`,
    ),
  );
  expect(text).not.toContain('any more');
});

test('the page of a fill leaves slots that are due after the end of the backfill to a later backfill', async () => {
  await doubt('malformed', 10, 13, systemClock.now() + 3 * DAY);
  expect(await look()).toContain('This backfill ends before that: a later one sends about 1 more request.');
});

test('the page of a fill promises nothing for slots whose last answer cannot be used', async () => {
  await doubt('malformed', 10, 13, 'infinity');
  const text = await look();
  expect(text).toContain('Fill 37 slots of 1 coin?');
  expect(text).toContain(
    'No longer requested: 3 slots malformed. The last answer of the upstream for them is not usable.',
  );
  expect(text).not.toContain('wait for a second answer');
});

test('the page of a fill with nothing to request now says until when', async () => {
  const at = systemClock.now() + 3 * HOUR;
  await doubt('malformed', 0, 40, at);
  expect(await look(400)).toContain(
    `nothing can be requested now: 40 slots malformed wait for a second answer, the first slot until ${minute(at)}`,
  );
  await database.sql`update ops.second_opinion set retry_at = 'infinity'`;
  expect(await look(400)).toContain('the last answer of the upstream for 40 slots malformed is not usable');
});
