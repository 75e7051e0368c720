import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HOUR } from '../../src/core/interval.ts';
import { verifySeries } from '../../src/views/operations/verify.ts';
import { answer, gate, NOW, type ORDERED, type Ordering, onWire, openOrdering } from './ordering.ts';

export function testReordered(intervals: readonly (typeof ORDERED)[number][]): void {
  describe.each(intervals)('a series of %s', (interval) => {
    let ordering: Ordering;
    let world: Ordering['world'];
    beforeEach(async () => {
      ordering = await openOrdering(interval);
      ({ world } = ordering);
    });
    afterEach(async () => {
      for await (const proof of verifySeries(world.database.sql, {}, world.clock.now()))
        expect(proof.differences).toEqual([]);
      await world.close();
    });
    const ask = (...args: Parameters<Ordering['ask']>) => ordering.ask(...args);
    const stored = () => ordering.stored();
    const covered = () => ordering.covered();
    const hours = (from: number, to: number) => ordering.hours(from, to);
    const revisions = () => ordering.revisions();

    describe('an older answer that is stored after a newer one', () => {
      test('overwrites nothing, and is final where the newer answer only had nothing at its edge', async () => {
        const late = gate();
        const older = await ask(-8, -2, late.reply);
        world.clock.advanceTo(world.clock.now() + 60_000);
        // The newer one requests less: four of the six slots. It has no candle at its edge.
        const newer = await ask(-6, -2, answer({ [-6]: 106, [-5]: 105, [-4]: 104, [-3]: null }));
        await newer.done();
        expect(await covered()).toBe(await hours(-6, -3));
        expect(await world.database.sql`select * from ops.second_opinion`).toMatchObject([
          { claim: 'unconfirmed', answers: 1 },
        ]);

        late.open(answer({ [-8]: 8, [-7]: 7, [-6]: 6, [-5]: 5, [-4]: 4, [-3]: 3 }));
        expect(await older.outcome).toMatchObject({ kind: 'stored', revised: 0 });
        await older.done();
        // Its own slots stay its own. Where both have a value the newer one stands. An edge is no evidence against a candle.
        expect(await stored()).toEqual({ [-8]: 8, [-7]: 7, [-6]: 106, [-5]: 105, [-4]: 104, [-3]: 3 });
        expect(await covered()).toBe(await hours(-8, -2));
        expect(await world.database.sql`select * from ops.second_opinion`).toEqual([]);
        expect(await revisions()).toEqual([]);
      });

      test('is recognised in a cached answer by its stated age', async () => {
        await (await ask(-6, -2, answer({ [-6]: 106, [-5]: 105, [-4]: 104, [-3]: null }))).done();
        world.clock.advanceTo(world.clock.now() + 5 * 60_000);
        await world.database.sql`update ops.second_opinion set retry_at = requested_at`;
        // Requested later, but ten minutes old.
        const cached = await ask(
          -9,
          -2,
          answer({ [-9]: 9, [-8]: 8, [-7]: 7, [-6]: 6, [-5]: 5, [-4]: 4, [-3]: 3 }, { age: '600' }),
        );
        await cached.done();
        expect(await stored()).toEqual({ [-9]: 9, [-8]: 8, [-7]: 7, [-6]: 106, [-5]: 105, [-4]: 104, [-3]: 3 });
        expect(await covered()).toBe(await hours(-9, -2));
        expect(await revisions()).toEqual([]);
      });

      test('does not restore a final candle that the newer one proved absent', async () => {
        const late = gate();
        const older = await ask(-6, -2, late.reply);
        world.clock.advanceTo(world.clock.now() + 60_000);
        await (await ask(-6, -2, answer({ [-6]: 6, [-5]: null, [-4]: 4, [-3]: 3 }))).done();
        late.open(answer({ [-6]: 6, [-5]: 5, [-4]: 4, [-3]: 3 }));
        expect(await older.outcome).toMatchObject({ kind: 'stored', stored: 0, revised: 0 });
        await older.done();
        expect(await stored()).toEqual({ [-6]: 6, [-4]: 4, [-3]: 3 });
        expect(await covered()).toBe(await hours(-6, -2));
      });

      test('does not restore a provisional candle that the final answer no longer had', async () => {
        const late = gate();
        const older = await ask(-4, 0, late.reply);
        world.clock.advanceTo(NOW + 10_000);
        await (await ask(-4, 0, answer({ [-4]: 4, [-3]: 3, [-2]: 2, [-1]: 1 }))).done();
        expect(await stored()).toEqual({ [-4]: 4, [-3]: 3, [-2]: 2, [-1]: 1 });
        world.clock.advanceTo(NOW + 3 * HOUR);
        const final = { [-6]: 6, [-5]: 5, [-4]: 4, [-3]: 3, [-2]: 2, 0: 10, 1: 11 };
        await (await ask(-6, 2, answer(final))).done();
        expect(await stored()).toEqual(final);
        late.open(answer({ [-4]: 4, [-3]: 3, [-2]: 2, [-1]: 1 }));
        await older.done();
        expect(await stored()).toEqual(final);
        expect(await covered()).toBe(await hours(-6, 2));
      });

      test('does not restore a provisional candle where two answers have agreed that there is none', async () => {
        const late = gate();
        const older = await ask(-4, 0, late.reply);
        for (const hours of [4, 6]) {
          world.clock.advanceTo(NOW + hours * HOUR);
          await (await ask(-1, 2, answer({ [-1]: null, 0: 10, 1: 11 }))).done();
        }
        expect(await covered()).toBe(await hours(-1, 2));
        late.open(answer({ [-4]: 4, [-3]: 3, [-2]: 2, [-1]: 1 }));
        await older.done();
        expect(await stored()).toEqual({ [-4]: 4, [-3]: 3, [-2]: 2, 0: 10, 1: 11 });
        expect(await covered()).toBe(await hours(-4, 2));
      });
    });

    test.each([
      ['as they were asked', [0, 1]],
      ['the other way round', [1, 0]],
    ])('of two answers of the same time the one requested later prevails, stored %s', async (_, order) => {
      const date = new Date(NOW - HOUR / 2).toUTCString();
      const gates = [gate(), gate()];
      const sent: Awaited<ReturnType<typeof ask>>[] = [];
      for (const { reply } of gates) {
        sent.push(await ask(-6, -3, reply));
        world.clock.advanceTo(world.clock.now() + 1_000);
      }
      const prices = [
        { [-6]: 1, [-5]: 1, [-4]: 1 },
        { [-6]: 2, [-5]: null, [-4]: 2 },
      ];
      for (const i of order) {
        gates[i]!.open(answer(prices[i]!, { date }));
        await sent[i]!.done();
      }
      expect(await stored()).toEqual({ [-6]: 2, [-4]: 2 });
      expect(await covered()).toBe(await hours(-6, -3));
    });

    describe('a newer answer', () => {
      test('that changes final candles keeps their old values as revisions', async () => {
        // The ends of the span are open, so that the chunk is requested again. Only its middle is final.
        await (await ask(-8, -2, answer({ [-8]: 8, [-7]: 7, [-6]: 6, [-5]: 5, [-4]: null, [-3]: null }))).done();
        expect(await covered()).toBe(await hours(-8, -4));
        world.clock.advanceTo(world.clock.now() + 2 * HOUR);
        // The gap alone is worth a request. An answer may still include its neighbours, like one that ignores `start`.
        const wider = await ask(
          -12,
          -2,
          answer({
            [-12]: 12,
            [-11]: 11,
            [-10]: 10,
            [-9]: 9,
            [-8]: 8,
            [-7]: 77,
            [-6]: 6,
            [-5]: 55,
            [-4]: null,
            [-3]: 3,
          }),
        );
        expect(await wider.outcome).toMatchObject({ kind: 'stored', revised: 2 });
        await wider.done();
        expect(await stored()).toMatchObject({ [-8]: 8, [-7]: 77, [-6]: 6, [-5]: 55, [-3]: 3 });
        expect(await revisions()).toEqual([
          { hour: -7, open: 7, close: 7, volume: 1_000, marketCap: null },
          { hour: -5, open: 5, close: 5, volume: 1_000, marketCap: null },
        ]);
        expect(await covered()).toBe(await hours(-12, -2));
        const [fetch] = await world.database
          .sql`select revised, stored from ops.fetch where series_id is not null order by id desc limit 1`;
        expect(fetch).toMatchObject({ revised: 2 });
        const ids = await world.database.sql<
          { ok: boolean }[]
        >`select bool_and(fetch_id is not null) as ok from market.revision`;
        expect(ids[0]!.ok).toBe(true);
      });

      test('that has a candle in a slot known to be empty keeps that as a revision, too', async () => {
        await (await ask(-8, -3, answer({ [-8]: 8, [-7]: 7, [-6]: null, [-5]: 5, [-4]: 4 }))).done();
        expect(await covered()).toBe(await hours(-8, -3));
        world.clock.advanceTo(world.clock.now() + HOUR);
        const wider = await ask(
          -10,
          -2,
          answer({ [-10]: 10, [-9]: 9, [-8]: 8, [-7]: 7, [-6]: 6, [-5]: 5, [-4]: 4, [-3]: 3 }),
        );
        await wider.done();
        expect(await stored()).toMatchObject({ [-6]: 6 });
        expect(await revisions()).toEqual([{ hour: -6, open: null, close: null, volume: null, marketCap: null }]);
      });

      test('that proves a final candle absent removes it, and keeps its values as a revision', async () => {
        await (await ask(-8, -3, answer({ [-8]: 8, [-7]: 7, [-6]: 6, [-5]: 5, [-4]: 4 }))).done();
        expect(await covered()).toBe(await hours(-8, -3));
        world.clock.advanceTo(world.clock.now() + HOUR);
        // At its edge it is no proof, so final candles there stay.
        const wider = await ask(
          -10,
          -2,
          answer({ [-10]: null, [-9]: null, [-8]: null, [-7]: 7, [-6]: null, [-5]: null, [-4]: 44, [-3]: 3 }),
        );
        expect(await wider.outcome).toMatchObject({ kind: 'stored', revised: 3 });
        await wider.done();
        expect(await stored()).toEqual({ [-8]: 8, [-7]: 7, [-4]: 44, [-3]: 3 });
        expect(await covered()).toBe(await hours(-8, -2));
        const kept = (await revisions()).sort((a, b) => a.hour - b.hour);
        expect(kept).toMatchObject([
          { hour: -6, open: 6, volume: 1_000 },
          { hour: -5, open: 5, volume: 1_000 },
          { hour: -4, open: 4, volume: 1_000 },
        ]);
        const [row] = await world.database.sql`
      select count(*)::int as n from market.revision r join ops.fetch f on f.id = r.fetch_id and f.revised = 3`;
        expect(row!.n).toBe(3);
        const [series] = await world.database.sql`select covered_candles::int as n from market.series`;
        expect(series!.n).toBe(4);
      });

      test('that lacks a final candle at its edge again and again does not make the slot empty', async () => {
        await (await ask(-6, -3, answer({ [-6]: 6, [-5]: 5, [-4]: 4 }))).done();
        for (let i = 0; i < 3; i++) {
          world.clock.advanceTo(world.clock.now() + 2 * HOUR);
          await (await ask(-9 - i, -3, answer({ [-9 - i]: 9, [-6]: 6, [-5]: null, [-4]: null }))).done();
        }
        expect(await stored()).toMatchObject({ [-6]: 6, [-5]: 5, [-4]: 4 });
        expect(await revisions()).toEqual([]);
      });

      test('that repeats the stored values writes nothing', async () => {
        await (await ask(-8, -2, answer({ [-8]: 8, [-7]: 7, [-6]: 6, [-5]: null, [-4]: null, [-3]: null }))).done();
        world.clock.advanceTo(world.clock.now() + 10 * 60_000);
        const rowOf7 = async () => {
          const { sql } = world.database;
          const [row] =
            interval === '1h'
              ? await sql`select xmin::text, ctid::text from market.candle where open = ${onWire(7)}`
              : await sql`select xmin::text, ctid::text from market.price where price = ${onWire(7)}`;
          return row!;
        };
        const before = await rowOf7();
        await (
          await ask(
            -10,
            -2,
            answer({ [-10]: 1, [-9]: 1, [-8]: 8, [-7]: 7, [-6]: 6, [-5]: null, [-4]: null, [-3]: null }),
          )
        ).done();
        expect(await rowOf7()).toEqual(before);
        expect(await revisions()).toEqual([]);
      });

      test('that proves a provisional candle absent removes it at once, without a revision', async () => {
        await (await ask(-4, 0, answer({ [-4]: 4, [-3]: 3, [-2]: 2, [-1]: 1 }))).done();
        expect(await stored()).toMatchObject({ [-1]: 1 });
        expect(await covered()).toBe(await hours(-4, -1));
        world.clock.advanceTo(NOW + 4 * HOUR);
        await (
          await ask(-6, 2, answer({ [-6]: 6, [-5]: 5, [-4]: 4, [-3]: 3, [-2]: 2, [-1]: null, 0: 10, 1: 11 }))
        ).done();
        expect(await stored()).toEqual({ [-6]: 6, [-5]: 5, [-4]: 4, [-3]: 3, [-2]: 2, 0: 10, 1: 11 });
        expect(await covered()).toBe(await hours(-6, 2));
        expect(await revisions()).toEqual([]);
      });

      test('that confirms an empty slot removes its provisional candle, too', async () => {
        await (await ask(-4, 0, answer({ [-4]: 4, [-3]: 3, [-2]: 2, [-1]: 1 }))).done();
        expect(await covered()).toBe(await hours(-4, -1));
        expect(await stored()).toMatchObject({ [-1]: 1 });
        world.clock.advanceTo(NOW + 4 * HOUR);
        await (await ask(-1, 2, answer({ [-1]: null, 0: 10, 1: 11 }))).done();
        // At the edge of the answer one answer is not enough.
        expect(await stored()).toMatchObject({ [-1]: 1 });
        world.clock.advanceTo(NOW + 6 * HOUR);
        await (await ask(-1, 2, answer({ [-1]: null, 0: 10, 1: 11 }))).done();
        expect(await stored()).toEqual({ [-4]: 4, [-3]: 3, [-2]: 2, 0: 10, 1: 11 });
        expect(await covered()).toBe(await hours(-4, 2));
        // What was never final is no revision.
        expect(await revisions()).toEqual([]);
      });
    });
  });
}
