/** What the pages say about the requests sent: how new the data is, and the requests of each hour of the last day. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { createDataAt } from '../../src/views/dashboard/data-at.ts';
import { createRequestsByHour } from '../../src/views/dashboard/requests-by-hour.ts';
import { createTestDashboard } from '../support/dashboard.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

const NOW = Date.UTC(2030, 4, 15, 10, 30);

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database.drop());

async function send(n: number, from: number, outcome: string, everyMs = 1_000) {
  await database.sql`
    insert into ops.fetch (sent_at, as_of, account_id, endpoint, attempt, status, outcome, duration_ms, rows, stored, revised, quarantined, bytes)
    select at, at, 'a', 'ohlcv', 1, 200, ${outcome}, 100, 1, 1, 0, 0, 70
    from generate_series(0, ${n - 1}::int) i, lateral (select ${from}::timestamptz + i * ${everyMs}::float8 * interval '1 ms' as at) t`;
}

describe('the time of the newest data', () => {
  const top = async () => {
    const page = await createTestDashboard(database.url, { clock: createVirtualClock(NOW), states: () => [] });
    const html = await page.page('/ui/keys');
    await page.close();
    return html.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
  };

  test('is found behind a long outage', async () => {
    expect(await top()).toContain('no data requested yet');
    await send(1, NOW - DAY, 'stored');
    await send(2_500, NOW - HOUR, 'unavailable');
    expect(await top()).toMatch(/newest data 2030-05-14 10:30Z/);
  });

  test('is shown as unknown, not as never, when none of the last requests brought data', async () => {
    await send(1_300, NOW - HOUR, 'unavailable');
    const text = await top();
    expect(text).toContain('none of the last 1,300 requests brought data');
    expect(text).not.toContain('no request yet');
  });

  test('is searched up to a limit, and then only in new requests', async () => {
    const { sql } = database;
    const read = createDataAt(sql);
    await send(1, NOW - DAY, 'stored');
    await send(112_000, NOW - 20 * HOUR, 'unavailable', 100);
    expect(await read()).toEqual({ at: null, lookedAt: 111_000 });
    // The row is not read again, even if it has changed.
    await sql`update ops.fetch set outcome = 'stored' where id = 50000`;
    await send(1_500, NOW - HOUR, 'unavailable');
    expect(await read()).toEqual({ at: null, lookedAt: 111_000 });
    await send(1, NOW, 'stored');
    await send(10, NOW + 1_000, 'unavailable');
    expect((await read()).at).toBe(NOW);
  });
});

describe('the requests of the last day by hour', () => {
  const seen = ({ hours }: Awaited<ReturnType<ReturnType<typeof createRequestsByHour>>>) =>
    hours.filter((hour) => hour.stored + hour.refused + hour.failed > 0);
  const [eight, ten] = [Date.UTC(2030, 4, 15, 8), Date.UTC(2030, 4, 15, 10)];

  test('count an hour that is over once, and the current hour each time', async () => {
    const read = createRequestsByHour(database.sql);
    await send(5, eight, 'stored');
    await send(3, eight, 'unavailable');
    await send(2, ten, 'not found');
    const first = [
      { from: eight, stored: 5, refused: 0, failed: 3 },
      { from: ten, stored: 0, refused: 2, failed: 0 },
    ];
    const answer = await read(NOW);
    expect([answer.hours.length, answer.uncountedBefore, seen(answer)]).toEqual([24, null, first]);
    await send(1, eight, 'stored');
    await send(4, ten, 'stored');
    expect(seen(await read(NOW + 60_000))).toEqual([first[0], { from: ten, stored: 4, refused: 2, failed: 0 }]);
    // An hour later the current hour is over. Requests recorded some minutes late are counted.
    expect(seen(await read(NOW + 33 * 60_000)).at(-1)).toMatchObject({ from: ten, stored: 4 });
    await send(1, ten + 59 * 60_000, 'stored');
    expect(seen(await read(NOW + 34 * 60_000)).at(-1)).toMatchObject({ from: ten, stored: 5 });
    expect(seen(await read(NOW + 22 * HOUR))).toEqual([{ from: ten, stored: 5, refused: 2, failed: 0 }]);
  });

  test('mark the hours beyond the limit as not counted', async () => {
    const read = createRequestsByHour(database.sql, 100);
    await send(100, eight, 'stored');
    await send(50, ten, 'stored');
    const answer = await read(NOW);
    expect(answer.uncountedBefore).toBe(eight + HOUR);
    expect(seen(answer)).toEqual([{ from: ten, stored: 50, refused: 0, failed: 0 }]);
    expect((await read(NOW + 60_000)).uncountedBefore).toBe(eight + HOUR);
    expect((await read(NOW + DAY)).uncountedBefore).toBeNull();
  });

  test('always include the whole current hour, whatever the limit', async () => {
    const read = createRequestsByHour(database.sql, 100);
    await send(100, eight, 'stored');
    await send(250, ten, 'stored');
    await send(50, ten, 'unavailable');
    for (const now of [NOW, NOW + 60_000]) {
      const answer = await read(now);
      expect(seen(answer)).toEqual([{ from: ten, stored: 250, refused: 0, failed: 50 }]);
      expect(answer.uncountedBefore).toBe(ten);
    }
  });

  test('are read once a minute for all visitors', async () => {
    const clock = createVirtualClock(NOW);
    const page = await createTestDashboard(database.url, { clock, states: () => [] });
    try {
      await send(7, ten, 'stored');
      const line = '2030-05-15 10:00Z: 7 answered';
      expect(await page.page('/')).toContain(line);
      await send(1, ten, 'stored');
      expect(await page.page('/')).toContain(line);
      clock.advance(61_000);
      expect(await page.page('/')).toContain('2030-05-15 10:00Z: 8 answered');
    } finally {
      await page.close();
    }
  });
});
