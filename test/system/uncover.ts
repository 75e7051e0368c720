/** The commands that verify prints, and a warehouse that was damaged and requested again. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DAY, floorToGrid } from '../../src/core/interval.ts';
import { runCommand } from '../support/cli.ts';
import { fill } from '../support/fill.ts';
import { createWorld, type World } from '../support/world.ts';

export const NOW = floorToGrid(Date.now(), '24h');
export const TARGET = { coins: ['btc-bitcoin'], from: NOW - 900 * DAY, to: NOW - 3 * DAY };

export let world: World;
export function useWorld(): void {
  beforeEach(async () => {
    world = await createWorld({ startAt: NOW, simulator: { coins: 6 } });
  });
  afterEach(() => world.close());
}

export const chandler = (...argv: string[]) => runCommand(argv, { env: { DATABASE_URL: world.database.url } });
/** Damage of the evidence itself: no stretch of the series repairs it. */
const OF_BTC = "(select id from market.series where coin_id = 'btc-bitcoin')";
const DAMAGES = [
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
] as const;

/** Tests the damages with these numbers. */
export function testDamages(numbers: readonly number[]): void {
  test.each(DAMAGES.filter((_, i) => numbers.includes(i)))(
    'the commands of verify repair it, and verify says once what is no longer proved: %s',
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
        // Meanwhile no reader sees the candles of another coin.
        if (damage.includes('eth'))
          expect(await sql`select from market.candles where coin_id = ${coinId}`).toHaveLength(0);
        const [, start, end] = /^chandler backfill .* --start (\S+) --end (\S+)$/.exec(commands[1]!)!;
        await fill(world, await world.open(), { coins: [coinId], from: Date.parse(start!), to: Date.parse(end!) });
      }
      const mended = await chandler('verify');
      expect(mended.code, mended.out).toBe(0);
      expect(mended.out.match(/so their contents are not proved/g) ?? []).toHaveLength(unproved);
      expect(await hashes()).toEqual(before);
      // A change to anything from before the repair is still found.
      await sql`update market.revision set close = close * 2 where id = (select min(id) from market.revision)`;
      expect((await chandler('verify')).code).toBe(1);
    },
  );
}
