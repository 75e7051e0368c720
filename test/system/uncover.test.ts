import { afterEach, beforeEach, expect, test } from 'vitest';
import { DAY, floorToGrid } from '../../src/core/interval.ts';
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
  expect((await chandler('verify')).code).toBe(0);
  expect((await upstream.backfill(TARGET)).totals?.requests).toBe(1);
  expect(await hash()).toBe(before);
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
