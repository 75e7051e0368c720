import { afterEach, beforeEach, expect, test } from 'vitest';
import { DAY, floorToGrid } from '../../src/core/interval.ts';
import { DEFAULT_KEEP } from '../../src/core/settings/retention-settings.ts';
import { removeOld } from '../../src/store/upkeep/retention.ts';
import { runCommand } from '../support/cli.ts';
import { fill } from '../support/fill.ts';
import { createWorld, type World } from '../support/world.ts';

const NOW = floorToGrid(Date.now(), '24h');
const TARGET = { coins: ['btc-bitcoin'], from: NOW - 900 * DAY, to: NOW - 3 * DAY };

let world: World;
beforeEach(async () => {
  world = await createWorld({ startAt: NOW });
});
afterEach(() => world.close());

const chandler = (...argv: string[]) => runCommand(argv, { env: { DATABASE_URL: world.database.url } });
/** What is told of the lost candle once it is mended, and no more. The oldest of the three answers told it: 897 slots are 366, 366 and 165. */
const NOTE = new RegExp(
  `\\nKnown of btc-bitcoin 24h usd, and no difference:\\n {2}- .*mended by step \\d+; before that, what was found differs from what was told: ` +
    `step \\d+ told 165 candles \\(digest \\w{16}\\), found were 164 \\(digest \\w{16}\\), the slot ${new Date(NOW - 800 * DAY).toISOString().slice(0, 10)} 00:00:00Z differs \\(locator \\+\\w{16}\\)\\n\\n`,
);
const hash = async () => JSON.parse((await chandler('verify', '--json')).out)[0].hash as string;

test('a candle that was lost is told from the others, and what the proof prints brings it back', async () => {
  const upstream = await world.open();
  await fill(world, upstream, TARGET);
  const before = await hash();
  await world.database.sql`delete from market.candle where open_time = ${new Date(NOW - 800 * DAY)}`;

  const proof = await chandler('verify');
  expect(proof.code).toBe(1);
  // The table stays narrow: what differs stands below it. A candle that is gone is not known to be empty.
  expect(proof.out).toMatch(/^btc-bitcoin .* 0 .* DIFFERS$/m);
  expect(proof.out).toMatch(/^btc-bitcoin .* differs:\n {2}- .*candle.*\n/m);
  expect(proof.out).toMatch(/, 0 slots known to be empty\. 1 series with differences\.$/m);
  const [, statement] = /chandler sql "(select ops\.uncover\(.*\))"/.exec(proof.out)!;
  const [, from, to] = /--start (\S+) --end (\S+)\n/.exec(proof.out)!.map((text) => Date.parse(text));
  // Exactly that slot.
  expect(from).toBeLessThanOrEqual(NOW - 800 * DAY);
  expect(to).toBeGreaterThan(NOW - 800 * DAY);
  expect((to! - from!) / DAY).toBe(1);

  expect(await chandler('sql', statement!)).toMatchObject({ code: 0 });
  const mended = await chandler('verify');
  expect(mended.code).toBe(0);
  expect(mended.out).toMatch(NOTE);
  expect((await upstream.backfill(TARGET)).totals?.requests).toBe(1);
  expect(await hash()).toBe(before);
});

test.each([
  ['mended', false],
  ['mended and asked for again', true],
])('that a candle was changed by hand and %s is still known when retention has removed it', async (_, isAsked) => {
  const { database } = world;
  const upstream = await world.open();
  await fill(world, upstream, TARGET);
  const lost = new Date(NOW - 800 * DAY);
  await database.sql`delete from market.candle where open_time = ${lost}`;
  await database.sql`select ops.uncover(id, ${lost}, ${new Date(NOW - 799 * DAY)}) from market.series`;
  if (isAsked) await fill(world, upstream, TARGET);
  const keep = { ...DEFAULT_KEEP, candles: { ...DEFAULT_KEEP.candles, '24h': 300 * DAY } };
  const removed = await removeOld(database, { keep, now: NOW });
  expect(removed!.partitions).not.toEqual([]);
  expect(await database.sql`select from market.candle where open_time between ${lost} and ${lost}`).toHaveLength(0);
  const { code, out } = await chandler('verify');
  expect(code, out).toBe(0);
  expect(out).toMatch(NOTE);
});

test('the whole series can be asked again', async () => {
  const upstream = await world.open();
  await fill(world, upstream, TARGET);
  const before = await hash();
  const { sql } = world.database;
  await sql`delete from market.candle where open_time in (${new Date(NOW - 800 * DAY)}, ${new Date(NOW - 100 * DAY)})`;
  await sql`update market.candle set open_time = open_time + interval '1 hour' where open_time = ${new Date(NOW - 50 * DAY)}`;

  const proof = await chandler('verify');
  expect(proof.out).toContain('1 candle off the 24h grid');
  const [, id] = /ops\.uncover\((\d+)/.exec(proof.out)!;
  await sql.unsafe(`select ops.uncover(${id})`);
  await fill(world, upstream, TARGET);
  expect((await chandler('verify')).code).toBe(0);
  expect(await hash()).toBe(before);
});

/** Damage of the evidence itself: no stretch of the series mends it. */
const OF_BTC = "(select id from market.series where coin_id = 'btc-bitcoin')";
test.each([
  ['all evidence deleted', 1, `delete from market.evidence where series_id = ${OF_BTC}`],
  ['a row of evidence deleted', 1, `delete from market.evidence where series_id = ${OF_BTC} and number = 2`],
  [
    'a forged row of evidence',
    1,
    `update market.evidence set digest = digest + 1 where series_id = ${OF_BTC} and number = 1`,
  ],
  ['a forged link', 0, `update market.series set link = sha256(link) where id = ${OF_BTC}`],
  ['a forged number of steps', 0, `update market.series set steps = 1 where id = ${OF_BTC}`],
  [
    'two coins that were given the candles of each other',
    2,
    `alter table market.series disable trigger user;
      update market.series set interval = '12h' where coin_id = 'eth-ethereum';
      update market.series set coin_id = 'eth-ethereum' where coin_id = 'btc-bitcoin';
      update market.series set coin_id = 'btc-bitcoin', interval = '24h' where interval = '12h';
      alter table market.series enable trigger user`,
  ],
] as const)(
  'what verify prints ends it, and says once what is not proved any more: %s',
  async (_, unproved, damage) => {
    const target = { ...TARGET, coins: ['btc-bitcoin', 'eth-ethereum'] };
    await fill(world, await world.open(), target);
    const { sql } = world.database;
    const hashes = async () =>
      (JSON.parse((await chandler('verify', '--json')).out) as { coinId: string; hash: string }[])
        .map(({ coinId, hash }) => `${coinId} ${hash}`)
        .sort();
    const before = await hashes();
    await sql.unsafe(damage);
    const proof = await chandler('verify', '--json');
    expect(proof.code).toBe(1);
    const proofs = JSON.parse(proof.out) as { coinId: string; commands: string[] }[];
    for (const { coinId, commands } of proofs.filter((one) => one.commands.length > 0)) {
      expect(commands).toHaveLength(2);
      const [, statement] = /^chandler sql "(select ops\.uncover\(\d+\))"$/.exec(commands[0]!)!;
      expect(await chandler('sql', statement!)).toMatchObject({ code: 0 });
      // Meanwhile nobody reads the candles of another coin.
      if (damage.includes('eth'))
        expect(await sql`select from market.candles where coin_id = ${coinId}`).toHaveLength(0);
      const [, start, end] = /^chandler backfill .* --start (\S+) --end (\S+)$/.exec(commands[1]!)!;
      await fill(world, await world.open(), { coins: [coinId], from: Date.parse(start!), to: Date.parse(end!) });
    }
    const mended = await chandler('verify');
    expect(mended.code, mended.out).toBe(0);
    expect(mended.out.match(/what they told is not proved/g) ?? []).toHaveLength(unproved);
    expect(await hashes()).toEqual(before);
    // Who changes anything from before the mending is found as ever.
    await sql`update market.revision set close = close * 2 where id = (select min(id) from market.revision)`;
    expect((await chandler('verify')).code).toBe(1);
  },
);
