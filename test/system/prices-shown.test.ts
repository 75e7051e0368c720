/** A price series as its operator sees it: what is stored, what is missing, what is wrong, and how to repair it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DAY, floorToGrid, HOUR } from '../../src/core/interval.ts';
import { runCommand } from '../support/cli.ts';
import { fill } from '../support/fill.ts';
import { type Chandler, createWorld, type World } from '../support/world.ts';
import { checkStored } from './oracle.ts';

const NOW = floorToGrid(Date.now(), '24h');
const COIN = 'btc-bitcoin';
const DAYS = { coins: [COIN], interval: 'prices-1d', from: NOW - 900 * DAY, to: NOW - 3 * DAY } as const;
const HOURS = { coins: [COIN], interval: 'prices-1h', from: NOW - 30 * DAY, to: NOW - 3 * DAY } as const;
const LOST = NOW - 800 * DAY;
const iso = (at: number) => new Date(at).toISOString();

let world: World;
let upstream: Chandler;
beforeAll(async () => {
  world = await createWorld({ startAt: NOW, simulator: { coins: 6 } });
  upstream = await world.open({ pricesPerRequest: 400 });
  for (const target of [DAYS, HOURS]) await fill(world, upstream, target);
});
afterAll(() => world?.close());

const chandler = (...argv: string[]) => runCommand(argv, { env: { DATABASE_URL: world.database.url } });
const answered = async (...argv: string[]) => {
  const { code, out, err } = await chandler(...argv);
  expect({ code, err }, out).toEqual({ code: 0, err: '' });
  return out;
};
type Proof = { readonly interval: string; readonly hash: string; readonly commands: string[] };
const proofs = async (): Promise<Proof[]> => JSON.parse((await chandler('verify', '--json')).out);
const hashes = async () => (await proofs()).map(({ interval, hash }) => `${interval} ${hash}`);
const idOf = (interval: string) => `(select id from market.series where interval = '${interval}')`;

describe('prices are called prices', () => {
  test('by verify', async () => {
    const out = await answered('verify');
    expect(out).toMatch(/^btc-bitcoin +prices-1h usd +648 +648 +0 +0 +[0-9a-f]{16} +ok$/m);
    expect(out).toMatch(/^btc-bitcoin +prices-1d usd +897 +897 +0 +0 +[0-9a-f]{16} +ok$/m);
    expect(out).toContain('2 series: 1,545 final prices, 0 slots known to be empty.');
    expect(out).not.toContain('candle');
    const only = await answered('verify', COIN, '--interval', 'prices-1h');
    expect(only).toContain('1 series: 648 final prices');
    await checkStored(world, 'prices');
  });

  test('by status and by gaps, also as JSON', async () => {
    expect(await answered('status')).toMatch(/prices-1d usd/);
    expect(await answered('gaps')).toBe('No gaps: every wanted slot has its final answer.\n');
    await world.database
      .sql`update market.series set wanted = wanted + ${[{ from: NOW - 40 * DAY, to: NOW }]}::tstzmultirange where interval = 'prices-1h'`;
    const gaps = await answered('gaps', '--interval', 'prices-1h');
    expect(gaps).toMatch(/^btc-bitcoin +prices-1h usd/m);
    expect(gaps).not.toMatch(/prices-1d|candle/);
    const rows = JSON.parse(await answered('gaps', '--json'));
    expect(rows[0]).toMatchObject({ coinId: COIN, interval: 'prices-1h', quote: 'usd', from: iso(NOW - 40 * DAY) });
    await world.database.sql`update market.series set wanted = covered where interval = 'prices-1h'`;
  });

  test('by explain, and by the story in SQL', async () => {
    const day = iso(LOST).slice(0, 10);
    const out = await answered('explain', COIN, 'prices-1d', day);
    expect(out).toMatch(/^btc-bitcoin prices-1d usd, from /);
    expect(out).toMatch(
      / final +An answer made the slot final: price [\d.]+, volume of 24 hours \d+, market cap \d+\. /,
    );
    expect(out).toMatch(/ now +The slot is final: price [\d.]+, volume of 24 hours \d+, market cap \d+\.$/m);
    expect(out).toContain('The answer contains the slot, or prices on both sides of it.');
    expect(out).not.toMatch(/candle|open |close /);
    const rows = await world.database.sql<{ event: string; detail: string }[]>`
      select event, detail from market.story(${COIN}, 'prices-1d', ${LOST}::timestamptz)`;
    // The database has another clock than the upstream.
    expect(rows.map(({ event }) => event).sort()).toEqual(['final', 'now', 'wanted']);
    expect(rows.map(({ detail }) => detail).join()).not.toContain('candle');
  });
});

const slot = (interval: string, at: number) => `series_id = ${idOf(interval)} and time = '${iso(at)}'`;
/** What verify prints, and the slots that are to be requested again. */
const DAMAGE: readonly (readonly [
  name: string,
  damage: string,
  said: RegExp,
  interval: string,
  slots: number | null,
])[] = [
  [
    'a price that was lost',
    `delete from market.price where ${slot('prices-1d', LOST)}`,
    /a price that an answer contains is missing/,
    'prices-1d',
    1,
  ],
  [
    'a price that was changed',
    `update market.price set price = price * 2 where ${slot('prices-1d', LOST)}`,
    /the stored price differs from the answer/,
    'prices-1d',
    1,
  ],
  [
    'a negative price',
    `update market.price set price = -1 where ${slot('prices-1h', NOW - 20 * DAY)}`,
    /1 price with impossible values \(negative, not finite\)/,
    'prices-1h',
    1,
  ],
  [
    'a price off the grid',
    `update market.price set time = time + interval '7 minutes' where ${slot('prices-1h', NOW - 20 * DAY)}`,
    /1 price off the prices-1h grid/,
    'prices-1h',
    1,
  ],
  [
    'two prices swapped',
    `update market.price p set price = o.price from market.price o where p.series_id = ${idOf('prices-1h')} and o.series_id = p.series_id
      and p.time in ('${iso(NOW - 10 * DAY)}', '${iso(NOW - 10 * DAY + HOUR)}') and o.time in ('${iso(NOW - 10 * DAY)}', '${iso(NOW - 10 * DAY + HOUR)}') and o.time <> p.time`,
    /prices differ from the answer in some of \d+ slots/,
    'prices-1h',
    null,
  ],
  [
    'all evidence deleted',
    `delete from market.evidence where series_id = ${idOf('prices-1d')}`,
    /evidence/,
    'prices-1d',
    null,
  ],
];

test.each(DAMAGE)('what verify prints restores prices: %s', async (_, damage, said, interval, slots) => {
  const before = await hashes();
  await world.database.sql.unsafe(damage);
  const proof = await chandler('verify');
  expect(proof.code).toBe(1);
  expect(proof.out).toMatch(said);
  expect(proof.out).toMatch(new RegExp(`^btc-bitcoin ${interval} usd differs:$`, 'm'));
  expect(proof.out).not.toContain('candle');

  const [wrong, ...others] = (await proofs()).filter(({ commands }) => commands.length > 0);
  expect(others).toEqual([]);
  const [mend, ask, ...more] = wrong!.commands;
  expect(more).toEqual([]);
  const [, statement] = /^chandler sql "(select ops\.uncover\(.*\))"$/.exec(mend!)!;
  await answered('sql', statement!);
  // Nothing differs any more, and the note about the difference stays.
  expect(await answered('verify')).not.toMatch(/DIFFERS|candle/);
  const asked = new RegExp(
    `^chandler backfill ${COIN} --interval ${interval} --quote usd --start (\\S+) --end (\\S+)$`,
  );
  const [from, to] = asked
    .exec(ask!)!
    .slice(1)
    .map((text) => Date.parse(text));
  if (slots !== null) expect((to! - from!) / (interval === 'prices-1d' ? DAY : HOUR)).toBe(slots);
  const run = await upstream.backfill({ coins: [COIN], interval: interval as 'prices-1d', from: from!, to: to! });
  if (slots !== null) expect(run.totals?.requests).toBe(1);
  await fill(world, upstream, interval === 'prices-1d' ? DAYS : HOURS);
  expect(await hashes()).toEqual(before);
  await answered('verify');
});
