/** Slots that two answers reported as empty: the map shows each where it is, or says that it does not. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DAY, HOUR, INTERVAL_MS, type Interval, isPriceInterval, MINUTE } from '../../src/core/interval.ts';
import { ensurePartitions } from '../../src/store/upkeep/partition.ts';
import { COVERAGE_STATES } from '../../src/views/dashboard/coverage-map.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { randomOf } from '../support/random.ts';
import { type CoveragePages, openCoveragePages } from './coverage-world.ts';

const BEGIN = Date.UTC(2023, 11, 1);
const END = Date.UTC(2024, 1, 1);
const iso = (at: number) => new Date(at).toISOString();
const TOLD_TWICE = COVERAGE_STATES.indexOf('told twice');
const SERIES = ['24h', '6h', '30m', '5m', 'prices-1d', 'prices-7d', 'prices-1h'] as const;

let database: TestDatabase;
let pages: CoveragePages;
beforeAll(async () => {
  database = await createTestDatabase();
  pages = openCoveragePages(database.sql);
  const { sql } = database;
  await sql`insert into market.coin (id, name, symbol, rank, type, is_new, is_active, first_seen_at, last_seen_at, rank_seen_at)
    values ('a-coin', 'Ada', 'A', 1, 'coin', false, true, now(), now(), now()), ('z-coin', 'Zed', 'Z', 2, 'coin', false, true, now(), now(), now())`;
  const random = randomOf(20);
  for (const interval of SERIES)
    await fill(interval, (at) => random() > 0.15 && ![BEGIN, END - INTERVAL_MS[interval]].includes(at));
});
afterAll(() => database?.drop());

/** Covered from begin to end, except for two days. Five of the first ten slots without a candle were reported by one answer only. */
async function fill(interval: Interval, has: (at: number) => boolean): Promise<void> {
  const { sql } = database;
  const wide = INTERVAL_MS[interval];
  const [first, end] = [Math.ceil(BEGIN / wide) * wide, Math.floor(END / wide) * wide];
  const slots = Array.from({ length: (end - first) / wide }, (_, i) => first + i * wide);
  const isCovered = (at: number) => at + wide <= BEGIN + 20 * DAY || at >= BEGIN + 22 * DAY;
  const there = new Set(slots.filter(has));
  const once = slots.filter((at) => isCovered(at) && !there.has(at)).slice(5, 10);
  const spans = (
    which: readonly number[],
  ) => sql`coalesce((select range_agg(tstzrange(t, t + ${wide / 1000} * interval '1 second'))
    from unnest(${which.map(iso)}::timestamptz[]) t), '{}')`;
  const [row] = await sql<{ id: number }[]>`
    insert into market.series (coin_id, quote, interval, wanted, covered, empty_once, covered_candles)
    values ('a-coin', 'usd', ${interval}, ${spans(slots)}, ${spans(slots.filter(isCovered))}, ${spans(once)}, ${[...there].filter(isCovered).length})
    returning id`;
  if (isPriceInterval(interval)) {
    await sql`insert into market.price (series_id, time, price) select ${row!.id}, t, 1 from unnest(${[...there].map(iso)}::timestamptz[]) t`;
    return;
  }
  await ensurePartitions(sql, interval, { from: BEGIN, to: END });
  await sql`insert into market.candle (series_id, interval, open_time, open, high, low, close)
    select ${row!.id}, ${interval}::market.candle_interval, t, 1, 1, 1, 1 from unnest(${[...there].map(iso)}::timestamptz[]) t`;
}

type Window = { readonly from: number; readonly to: number; readonly step: number };

/** The stretches that the map draws, as seconds from..to. */
async function drawn(interval: Interval, { from, to, step }: Window): Promise<string[]> {
  const { rows, ...answer } = await pages.data({ interval, from: iso(from), to: iso(to), step, rows: 1 });
  const { stretches, toldTwiceElsewhere } = rows[0]!;
  expect(toldTwiceElsewhere).toBe(0);
  const found = [];
  for (let i = 0; i < stretches.length; i += 3)
    if (stretches[i] === TOLD_TWICE)
      found.push(`${answer.from + stretches[i + 1]! * step}..${answer.from + stretches[i + 2]! * step}`);
  return found;
}

/** The same, slot by slot, widened to steps. */
async function inSql(interval: Interval, window: Window): Promise<string[]> {
  const step = window.step;
  const from = Math.floor(window.from / 1000 / step) * step;
  const to = Math.ceil(window.to / 1000 / step) * step;
  const rows = await database.sql<{ text: string }[]>`
    with there as (select series_id, open_time as at from market.candle union all select series_id, time from market.price)
    select lower(r) || '..' || upper(r) as text from unnest((
      select range_agg(int8range(
        floor(greatest(extract(epoch from at), ${from}::int) / ${step}::int)::bigint * ${step}::int,
        ceil(least(extract(epoch from at) + w, ${to}::int) / ${step}::int)::bigint * ${step}::int))
      from market.series s, ops.seconds_of(s.interval) w, unnest(s.covered - s.empty_once) c,
        generate_series(lower(c), upper(c) - w * interval '1 second', w * interval '1 second') at
      where s.interval = ${interval}::market.candle_interval and extract(epoch from at) < ${to}::int and extract(epoch from at) + w > ${from}::int
        and (s.id, at) not in (select series_id, there.at from there))) r order by r`;
  return rows.map(({ text }) => text);
}

describe.each(SERIES)('slots of %s that two answers reported as empty are drawn where no candle is', (interval) => {
  it.each<[string, Window]>([
    ['slot by slot', { from: BEGIN - 2 * DAY, to: END + DAY, step: Math.max(300, INTERVAL_MS[interval] / 4_000) }],
    ['with several slots in a step', { from: BEGIN, to: END, step: 4 * 86_400 }],
    [
      'in a window that cuts slots',
      { from: BEGIN + 5 * DAY + 40 * MINUTE, to: BEGIN + 34 * DAY + 3 * HOUR + 2 * MINUTE, step: 240 },
    ],
    ['in a window within a slot', { from: BEGIN + 8 * DAY + 61 * MINUTE, to: BEGIN + 8 * DAY + 64 * MINUTE, step: 7 }],
  ])('%s', async (_, window) => {
    const expected = await inSql(interval, window);
    expect(await drawn(interval, window)).toEqual(expected);
    if (window.to >= END) expect(expected.length).toBeGreaterThan(0);
  });
});

it('a series with too many slots to read shows how many it has, and shows them when a shorter time is requested', async () => {
  const { sql } = database;
  await sql`insert into market.series (coin_id, quote, interval, wanted, covered, covered_candles)
    select 'z-coin', 'usd', '5m', spans, spans, 12 * 24 * 366 * 2 - 7
    from (select tstzmultirange(tstzrange('2023-01-01', '2025-01-02')) as spans) x`;
  const ask = (from: string, to: string) => pages.data({ coin: 'z-coin', from, to, step: 86_400, rows: 1 });
  const all = (await ask('2023-01-01', '2026-01-01')).rows[0]!;
  expect(all.toldTwiceElsewhere).toBe(7);
  expect(all.stretches).not.toContain(TOLD_TWICE);
  const part = (await ask('2024-01-01', '2024-02-01')).rows[0]!;
  expect(part.toldTwiceElsewhere).toBe(0);
  expect(part.stretches.slice(3, 6)).toEqual([TOLD_TWICE, 0, 31]);
  // This part has no slots to read.
  expect((await ask('2025-02-01', '2026-01-01')).rows[0]!.toldTwiceElsewhere).toBe(0);
  await sql`delete from market.series where coin_id = 'z-coin'`;
});

it('the filter selects the series in which market.coverage counts such slots', async () => {
  const { sql } = database;
  await sql`insert into market.series (coin_id, quote, interval, wanted, covered, covered_candles, empty_once)
    select 'z-coin', 'usd', '24h', spans, spans, 9, tstzmultirange(tstzrange('2024-01-01', '2024-01-02'))
    from (select tstzmultirange(tstzrange('2024-01-01', '2024-01-11')) as spans) x`;
  const counted = await sql<{ interval: string }[]>`
    select coin_id, interval from market.coverage where slots_empty_twice > 0 order by interval desc`;
  const { rows } = await pages.data({ reason: 'told twice', from: iso(BEGIN), to: iso(END), step: 86_400, rows: 100 });
  expect(rows.map(({ coinId, interval }) => ({ coinId, interval }))).toEqual(counted);
  expect(counted).toHaveLength(SERIES.length);
  await sql`delete from market.series where coin_id = 'z-coin'`;
});
