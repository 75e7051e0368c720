import { expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { DEFAULT_KEEP } from '../../src/core/settings/retention-settings.ts';
import { removeOld } from '../../src/store/upkeep/retention.ts';
import { fill } from '../support/fill.ts';
import { chandler, NOW, TARGET, testDamages, useWorld, world } from './uncover.ts';

useWorld();

/**
 * What is reported about the lost candle once it is repaired, and no more. The oldest of the three answers reported it: 897 slots are 366,
 * 366 and 165.
 */
const NOTE = new RegExp(
  `\\nRemarks on btc-bitcoin 24h usd, which are not differences:\\n {2}- .*mended by step \\d+; before that, what was found differs from what was told: ` +
    `step \\d+ told 165 candles \\(digest \\w{16}\\), found were 164 \\(digest \\w{16}\\), the slot ${new Date(NOW - 800 * DAY).toISOString().slice(0, 10)} 00:00:00Z differs \\(locator \\+\\w{16}\\)\\n\\n`,
);
const hash = async () => JSON.parse((await chandler('verify', '--json')).out)[0].hash as string;

test('verify names exactly the slot of a lost candle, and its commands restore the candle', async () => {
  const upstream = await world.open();
  await fill(world, upstream, TARGET);
  const before = await hash();
  await world.database.sql`delete from market.candle where open_time = ${new Date(NOW - 800 * DAY)}`;

  const proof = await chandler('verify');
  expect(proof.code).toBe(1);
  // The table stays narrow, with the differences below it. A missing candle is not known to be empty.
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
])('that a candle was changed by hand and %s is still reported when retention has removed it', async (_, isAsked) => {
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

test('verify can have the whole series requested again', async () => {
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

testDamages([0]);
