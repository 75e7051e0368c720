import { afterAll, beforeAll, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { applyTracks } from '../../../src/store/tracking/apply-track-rules.ts';
import { addTracks } from '../../../src/store/tracking/track-rule.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { runCommand } from '../../support/cli.ts';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { day, FIRST_DAY, newDailySeries, storeAnswer } from '../../support/stored-answers.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await ensurePartitions(database.sql, '24h', { from: FIRST_DAY, to: day(400) });
});
afterAll(() => database.drop());

const explain = (...argv: string[]) => runCommand(['explain', ...argv], { env: { DATABASE_URL: database.url } });

type Event = { readonly at: string; readonly event: string; readonly detail: string };

/** The story of day 5, which is 2024-01-06. */
async function storyOf(coinId: string): Promise<Event[]> {
  const { code, out, err } = await explain(coinId, '24h', '2024-01-06', '--json');
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const story = JSON.parse(out);
  expect(story).toMatchObject({ coinId, interval: '24h', quote: 'usd' });
  expect(story.slot).toEqual({ from: '2024-01-06T00:00:00.000Z', to: '2024-01-07T00:00:00.000Z' });
  return story.events;
}
const details = (events: readonly Event[], wanted: string) =>
  events.filter(({ event }) => event === wanted).map(({ detail }) => detail);

/** A series that is wanted since day 15. */
async function seriesSince15(coinId: string): Promise<number> {
  const id = await newDailySeries(database.sql, coinId);
  await database.sql`update market.series set created_at = ${day(15)} where id = ${id}`;
  return id;
}

type NewBackfill = { readonly spec: object; readonly from?: number; readonly finished?: boolean };

async function newBackfill({ spec, from = 0, finished = true }: NewBackfill): Promise<number> {
  const [row] = await database.sql<{ id: number }[]>`
    insert into ops.backfill (requested_at, started_at, finished_at, state, spec, span, interval, quote, planned_requests, owner,
      heartbeat_at, requested_by)
    values (${day(19)}, ${day(19)}, ${finished ? day(21) : null}, ${finished ? 'done' : 'running'}, ${spec as never},
      tstzrange(${day(from)}, ${day(10)}), '24h', 'usd', 1, 'host:1', ${day(21)}, 'ann@desk')
    returning id`;
  return row!.id;
}

test('explain shows in order of time who wanted the slot, which requests were sent, and which answer the slot comes from', async () => {
  const id = await seriesSince15('a-coin');
  const mine = await newBackfill({ spec: { coins: ['a-coin'] } });
  await newBackfill({ spec: { coins: ['another-coin'] } });
  await newBackfill({ spec: { coins: ['a-coin'] }, from: 6 });
  await storeAnswer(database.sql, id, [0, 10], 20);
  await database.sql`update ops.fetch set backfill_id = ${mine}, attempt = 2 where series_id = ${id}`;
  await storeAnswer(database.sql, id, [0, 10], 30, { times: 2 });
  const events = await storyOf('a-coin');
  expect(events.map(({ event }) => event)).toEqual([
    ...['wanted', 'backfill', 'asked', 'final', 'ended', 'asked', 'revised', 'now', 'next'],
  ]);
  expect(details(events, 'backfill')).toEqual([
    `Backfill ${mine} was requested by ann@desk: 24h usd from 2024-01-01 to 2024-01-11.`,
  ]);
  expect(details(events, 'ended')).toEqual([`Backfill ${mine} ended: done.`]);
  const [first, second] = details(events, 'asked');
  expect(first).toMatch(
    new RegExp(
      `^Request \\d+, for backfill ${mine} by ann@desk, attempt 2, with account anonymous@test: stored, 10 rows, ` +
        'as of 2024-01-21 00:00Z\\. The answer contains the slot, or candles on both sides of it\\.$',
    ),
  );
  expect(second).toMatch(/^Request \d+, to keep the series fresh, with account anonymous@test: stored, 10 rows, /);
  expect(details(events, 'next')).toEqual(['Chandler does not request it automatically: it has its final answer.']);

  const { out } = await explain('a-coin', '24h', '2024-01-06T15:30+02:00');
  const [inside, heading, , ...lines] = out.trimEnd().split('\n');
  expect(inside).toBe('2024-01-06 13:30Z is inside the 24h slot that opens at 2024-01-06 00:00Z.');
  expect(heading).toBe('a-coin 24h usd, from 2024-01-06 to 2024-01-07 (UTC):');
  // The time of the current state differs between the two runs.
  expect(lines.slice(0, -2)).toEqual(
    events
      .slice(0, -2)
      .map(({ at, event, detail }) => `${at.slice(0, 10)} ${at.slice(11, 19)}Z  ${event.padEnd(8)}  ${detail}`),
  );
});

test('explain shows failed requests, a claim that needs a second opinion, and the time of the next request', async () => {
  const id = await seriesSince15('b-coin');
  await newBackfill({ spec: { all: true }, finished: false });
  await storeAnswer(database.sql, id, [0, 6], 20, { without: [5] });
  await database.sql`
    insert into ops.fetch (sent_at, as_of, account_id, endpoint, series_id, span, attempt, status, outcome, duration_ms, rows, stored,
      revised, quarantined, bytes, message)
    values (${day(25)}, ${day(25)}, 'key@test', 'ohlcv', ${id}, tstzrange(${day(0)}, ${day(6)}), 1, 503, 'unavailable', 1, 0, 0, 0, 0, 1,
      'come back later')`;
  const events = await storyOf('b-coin');
  expect(details(events, 'backfill')).toEqual([expect.stringMatching(/ It is running\.$/)]);
  expect(details(events, 'asked')).toEqual([
    expect.stringMatching(/The slot is at the edge of the answer, without a candle\.$/),
    expect.stringMatching(/with account key@test: unavailable \(HTTP status 503\): come back later\.$/),
  ]);
  expect(details(events, 'claim')).toEqual([
    'One answer is not enough here (unconfirmed); 1 answer so far. Chandler may request it again from 2024-01-21 01:00Z.',
  ]);
  expect(details(events, 'next')).toEqual([
    'It is missing: unconfirmed. Chandler may request it again from 2024-01-21 01:00:00Z.',
  ]);
  await database.sql`update ops.second_opinion set retry_at = 'infinity' where series_id = ${id}`;
  expect(details(await storyOf('b-coin'), 'claim')[0]).toMatch(/Chandler does not request it again automatically\.$/);
});

test('explain says of a provisional slot that it was too recent for a final answer, not that another answer must agree', async () => {
  const id = await seriesSince15('young-coin');
  await storeAnswer(database.sql, id, [0, 6], 6);
  expect(details(await storyOf('young-coin'), 'claim')).toEqual([
    'The slot was too recent for a final answer (provisional). Chandler may request it again from 2024-01-08 00:00Z.',
  ]);
});

test('explain shows which rules of chandler track want the slot, and when its series is refreshed next', async () => {
  const id = await seriesSince15('c-coin');
  const rule = { interval: '24h', quote: 'usd', since: FIRST_DAY, priority: 0, targetAgeMs: DAY } as const;
  await addTracks(
    database.sql,
    [
      { ...rule, tier: 'list', coinId: 'c-coin' },
      { ...rule, tier: 'top', top: 3 },
      { ...rule, tier: 'all', since: day(6) },
    ],
    day(16),
  );
  await applyTracks(database.sql, day(1_000));
  await database.sql`update ops.tracked set asked_at = ${day(1_000)} where series_id = ${id}`;
  await database.sql`update ops.tier set achievable_age = interval '2 days'`;
  const events = await storyOf('c-coin');
  expect(details(events, 'tracked')).toEqual([
    'A rule of chandler track selects it: c-coin, since 2024-01-01, target age 1d.',
    'A rule of chandler track selects it: the 3 best-ranked coins, since 2024-01-01, target age 1d.',
    'Chandler began to keep the series fresh.',
  ]);
  expect(details(events, 'next').at(-1)).toBe(
    'The service keeps the newest end of the series fresh (target age 1d): last requested at 2026-09-27 00:00Z; ' +
      'the next request is due at 2026-09-29 00:00Z.',
  );
  // A series that no rule wants any more waits until its last candle can be final.
  const endsAt = Math.floor(Date.now() / DAY + 10) * DAY;
  await database.sql`update ops.tracked set ends_at = ${endsAt} where series_id = ${id}`;
  const date = (at: number) => new Date(at).toISOString().slice(0, 10);
  expect(details(await storyOf('c-coin'), 'next').at(-1)).toBe(
    `No rule wants the series after ${date(endsAt)} 00:00Z; the service completes it until then: last requested at 2026-09-27 00:00Z; ` +
      `the next request is due at ${date(endsAt + DAY)} 00:00Z.`,
  );
});

test('explain says that records of requests were removed, and that nobody wants a slot', async () => {
  const id = await seriesSince15('d-coin');
  await storeAnswer(database.sql, id, [0, 10], 20);
  await database.sql`delete from ops.fetch where series_id = ${id}`;
  const events = await storyOf('d-coin');
  expect(details(events, 'asked')).toEqual([]);
  expect(details(events, 'note')).toEqual([
    'Requests up to here may be missing: Chandler removed their records because of their age. The evidence stays.',
  ]);
  const { out } = await explain('d-coin', '24h', '2023-12-01');
  expect(out).toContain('Chandler does not request it: no backfill and no rule wants it.\n');
});

test('explain says what is wrong with the input and ends with 2', async () => {
  await newDailySeries(database.sql, 'btc-bitcoin');
  await database.sql`insert into market.coin_rename (old_id, new_id, renamed_at, source) values ('old-coin', 'btc-bitcoin', now(), 'coins')`;
  const fine = await newDailySeries(database.sql, 'fine-coin');
  await database.sql`update market.series set interval = '1h' where id = ${fine}`;
  const wrong: [string[], string | RegExp][] = [
    [
      ['fine-coin', '24h', '2024-01-06T05:00Z'],
      'there is no series fine-coin 24h usd; it has 1h usd. market.candles makes its 24h candles of those of 1h: ' +
        'chandler explain fine-coin 1h 2024-01-06T05:00:00.000Z. What it costs to get it: ',
    ],
    [['fine-coin', '24h', '2024-01-06', '--quote', 'btc'], 'it has 1h usd. What it costs'],
    [['btc-bitcion', '24h', '2024-01-06'], /there is no coin btc-bitcion; did you mean btc-bitcoin\?/],
    [['nothing-alike-at-all', '24h', '2024-01-06'], /there is no coin nothing-alike-at-all; a coin is named by its id/],
    [['old-coin', '24h', '2024-01-06'], 'the coin old-coin has the id btc-bitcoin now'],
    [['', '24h', '2024-01-06'], 'A coin id is empty'],
    [
      ['btc-bitcoin', '1d', '2024-01-06'],
      /argument <interval>: '1d' is invalid.*did you mean 24h, or of prices prices-1d\?/,
    ],
    [['btc-bitcoin', '24h', 'tomorrow'], /argument <time>: 'tomorrow' is invalid.*2024-01-31/],
    [['btc-bitcoin', '24h', '2024-02-30'], /2024-02 has 29 days/],
    [['btc-bitcoin', '1h', '-3d'], /there is no series btc-bitcoin 1h usd; it has 24h usd/],
    [['btc-bitcoin', '24h', '2099-01-01'], /argument <time>: '2099-01-01' is invalid. It lies in the future/],
    [['btc-bitcoin', '24h', '2024-01-06', '--quote', 'eur'], /'eur' is invalid.*usd, btc/],
    [['btc-bitcoin', '24h'], "missing required argument 'time'"],
    [
      ['btc-bitcoin', '1h', '2024-01-06T05:00Z', '--quote', 'btc'],
      'there is no series btc-bitcoin 1h btc; it has 24h usd. What it costs to get it: ' +
        'chandler plan btc-bitcoin --interval 1h --quote btc --start 2024-01-06\n',
    ],
  ];
  for (const [argv, message] of wrong) {
    const { code, out, err } = await explain(...argv);
    expect({ argv, code, out }).toEqual({ argv, code: 2, out: '' });
    if (typeof message === 'string') expect(err).toContain(message);
    else expect(err).toMatch(message);
  }
});

test('explain without a list of coins says how to begin', async () => {
  const empty = await createEmptyDatabase();
  try {
    await runCommand(['migrate'], { env: { DATABASE_URL: empty.url } });
    const { code, err } = await runCommand(['explain', 'btc-bitcoin', '24h', '2024-01-06'], {
      env: { DATABASE_URL: empty.url },
    });
    expect(code).toBe(2);
    expect(err).toContain('the list of coins was not read yet, so btc-bitcoin is not known; begin with: chandler plan');
  } finally {
    await empty.drop();
  }
});

test('explain shows that a slot which one answer reported as empty is requested once more', async () => {
  const id = await seriesSince15('hole-coin');
  await storeAnswer(database.sql, id, [0, 10], 20, { without: [5] });
  const before = await storyOf('hole-coin');
  expect(details(before, 'next')).toEqual([
    'Only one answer shows that it is empty. The schedule confirm_holes requests it once more when quota is left over and the plan reaches so far back.',
  ]);
  await storeAnswer(database.sql, id, [4, 7], 30, { without: [5] });
  await database.sql`update ops.fetch set subject = 'holes' where series_id = ${id} and sent_at = ${day(30)}`;
  const after = await storyOf('hole-coin');
  expect(details(after, 'next')).toEqual(['Chandler does not request it automatically: it has its final answer.']);
  expect(details(after, 'now')).toEqual(['The slot is known to be empty: two answers said so.']);
  expect(details(after, 'asked')[1]).toMatch(/^Request \d+, to confirm holes, with account /);
});
