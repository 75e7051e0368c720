/** A warehouse is damaged by hand: verify finds the damage, names the slots, and says how to mend them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestDatabase } from '../../support/database.ts';
import { createWarehouse, inWords, type Kept, PRICES, slot, verifiedAfter } from './tampering.ts';
import { day, IMPOSSIBLE_TIMES, of, ofRevision, rowAt, type TABLE, WITHOUT_BOUNDS } from './tampering-table.ts';

/** `table`: the damage to test. `which`: whether the other tests run as well. */
export function testTampering(rows: string, kept: Kept, table: typeof TABLE, which: 'and all else' | 'alone'): void {
  describe(`of ${rows}`, () => {
    let database: TestDatabase;
    let [a, b] = [0, 0];
    beforeAll(async () => {
      ({ database, a, b } = await createWarehouse(kept));
    });
    afterAll(() => database.drop());
    const spoken = (damage: string) => inWords(damage, kept).replaceAll(':A', `${a}`).replaceAll(':B', `${b}`);

    test('verify finds no difference in an untouched warehouse', async () => {
      const { proofs, all } = await verifiedAfter(database, 'select 1');
      expect(all).toEqual([]);
      expect(proofs).toHaveLength(2);
    });

    test.each(table)('verify finds damage and says how to mend it: %s', async (_, damage, days) => {
      const { proofs, all, unmended } = await verifiedAfter(database, spoken(damage));
      expect(all).not.toEqual([]);
      expect(unmended).toEqual([]);
      // Where the data allow it: these slots, and no others.
      if (days.length > 0) {
        const named = proofs.flatMap((proof) => proof.stretches);
        expect(named).toEqual(days.map(slot));
      }
    });

    if (which === 'alone') return;

    describe('verify names a row at a time that no slot has, prints a statement that removes it, and still checks the rest', () => {
      const partitions = kept === PRICES ? 'select 1' : WITHOUT_BOUNDS;
      test.each(IMPOSSIBLE_TIMES)('%s', async (time) => {
        const damage = `${partitions}; ${rowAt(time)}; update {rows} set {close} = {close} * 1.001 where ${of('B', 7)}`;
        const { proofs, others, unmended } = await verifiedAfter(database, spoken(damage));
        expect(others).toEqual([]);
        expect(unmended).toEqual([]);
        expect(proofs.find(({ seriesId }) => seriesId === a)).toMatchObject({
          differences: [`1 ${kept === PRICES ? 'price' : 'candle'} at a time that no slot can have (${time})`],
          repairs: [],
          removals: [expect.stringContaining(`delete from ${kept.table} where series_id = ${a} and `)],
          toRefetch: [],
        });
        // Everything else is verified.
        expect(proofs.find(({ seriesId }) => seriesId === b)!.stretches).toEqual([slot(7)]);
      });

      test('even when the digest of the series includes it', async () => {
        const damage = `${partitions}; ${rowAt('infinity')}; ${rowAt('0044-03-15 BC')};
        update market.series set candles = candles + 2, covered = covered + '{[9000-01-01Z,)}', digest = digest # 1 where id = :A`;
        const { all, unmended } = await verifiedAfter(database, spoken(damage));
        expect(all).toContainEqual(
          expect.stringMatching(/^2 (candle|price)s at times that no slot can have \(the first: 0044/),
        );
        expect(unmended).toEqual([]);
      });
    });

    test('verify names a series by its requests when it was deleted with everything about it', async () => {
      const tables = ['{rows}', 'market.evidence', 'market.revision'].map(
        (from) => `delete from ${from} where series_id = :B`,
      );
      const damage = `${tables.join(';')}; delete from market.series where id = :B`;
      const { others } = await verifiedAfter(database, spoken(damage));
      expect(others).toEqual([
        expect.stringMatching(
          new RegExp(`^market.series: series ${b} is missing; \\d+ requests stored 732 rows of it`),
        ),
      ]);
    });

    describe('an attacker who changes candles and mends them hides nothing:', () => {
      const mend = (from: number, to: number) => `select ops.uncover(:A, ${day(from)}, ${day(to)})`;
      /** What verify finds in the series after the statements, and what the newest step of its evidence says. */
      async function mended(...statements: string[]) {
        const { proofs, all } = await verifiedAfter(database, spoken(statements.join(';')));
        return { all, notes: proofs.find(({ seriesId }) => seriesId === a)!.notes };
      }
      const DIGESTS = / \((digest |locator \+)[0-9a-f]{16}\)/g;
      const differing = (text: string) =>
        /what was found differs from what was told: (.*)$/.exec(text)?.[1]?.replace(DIGESTS, '');

      test.each<[string, string, string]>([
        [
          'one changed value is named',
          `update {rows} set {volume} = {volume} * 2 + 1 where ${of('A', 50)}; ${mend(50, 51)}`,
          'step 2 told 366 candles, found were 366, the slot 2023-02-20 00:00:00Z differs',
        ],
        [
          'so it is in a longer stretch',
          `update {rows} set {volume} = {volume} * 2 + 1 where ${of('A', 50)}; ${mend(20, 90)}`,
          'step 2 told 366 candles, found were 366, the slot 2023-02-20 00:00:00Z differs',
        ],
        [
          'a deleted row',
          `delete from {rows} where ${of('A', 60)}; ${mend(0, 366)}`,
          'step 2 told 366 candles, found were 365, the slot 2023-03-02 00:00:00Z differs',
        ],
        [
          'several of one answer',
          `update {rows} set {volume} = {volume} * 2 + 1 where series_id = :A and {time} in (${day(50)}, ${day(51)}); ${mend(0, 366)}`,
          'step 2 told 366 candles, found were 366, which of its slots is not known',
        ],
        [
          'of two answers, one of which a later one changed in part',
          `update {rows} set {volume} = {volume} * 2 + 1 where series_id = :A and {time} in (${day(50)}, ${day(400)}); ${mend(0, 500)}`,
          'step 1 told 366 candles, found were 366, the slot 2024-02-05 00:00:00Z differs; ' +
            'step 2 told 366 candles, found were 366, the slot 2023-02-20 00:00:00Z differs',
        ],
        [
          'what a late answer told',
          `update {rows} set {volume} = {volume} * 2 + 1 where ${of('A', 371)}; ${mend(371, 372)}`,
          'step 3 told 2 candles, found were 2, the slot 2024-01-07 00:00:00Z differs',
        ],
        [
          'what was told after an earlier repair',
          `update {rows} set {volume} = {volume} * 2 + 1 where ${of('A', 105)}; ${mend(100, 110)}`,
          'step 9 told 10 candles, found were 10, the slot 2023-04-16 00:00:00Z differs',
        ],
      ])('%s', async (_, damage, expected) => {
        const { all, notes } = await mended(damage);
        expect(all).toEqual([]);
        expect(notes.map(differing)).toEqual([expected.replaceAll('candles', rows)]);
      });

      test('slots that do not differ are not doubted, even beside one that does', async () => {
        expect(await mended(mend(0, 736))).toEqual({ all: [], notes: [] });
        const { all, notes } = await mended(
          `update {rows} set {volume} = {volume} * 2 + 1 where ${of('A', 50)}`,
          mend(51, 99),
        );
        expect(all).toContainEqual(
          expect.stringMatching(/^2023-02-20 .* the stored (candle|price) differs from the answer/),
        );
        expect(notes).toEqual([]);
      });

      test.each([
        [
          'an old value of a slot that was mended',
          mend(371, 372),
          `update market.revision set close = close * 2 where ${ofRevision('A', 371)} and reason <> 'mended'`,
        ],
        [
          'the same, of one that had been changed before',
          `update {rows} set {volume} = {volume} * 2 + 1 where ${of('A', 50)}; ${mend(0, 400)}`,
          `update market.revision set close = close * 2 where ${ofRevision('A', 371)} and reason <> 'mended'`,
        ],
      ])('verify finds that a mended slot was changed later: %s', async (_, first, then) => {
        const { all } = await mended(first, then);
        expect(all).toContainEqual(
          expect.stringMatching(/the stored rows of step 1 were changed after they were mended/),
        );
      });

      test('what a repair found is not returned as known before', async () => {
        const knownAt = '(select known_at from market.evidence where series_id = :A and number = 2)';
        const function_ = kept === PRICES ? 'market.prices_as_known' : 'market.candles_as_known';
        const known = (
          days: readonly number[],
        ) => `do $$ begin if (select coalesce(array_agg({time} order by {time}), '{}')
          from ${function_}(${knownAt}) where coin_id = 'coin-0' and {time} in (${[50, 51, 60, 400].map(day)}))
        is distinct from array[${days.map(day)}]::timestamptz[] then raise 'others are known'; end if; end $$`;
        const change = `update {rows} set {volume} = {volume} * 2 + 1 where series_id = :A and {time}`;
        // As it was answered.
        expect((await mended(mend(0, 500), known([50, 51, 60, 400]))).all).toEqual([]);
        await mended(`${change} = ${day(50)}`, mend(50, 61), known([51, 60, 400]));
        // Which slot differs is not known, so none of this answer is returned.
        await mended(`${change} in (${day(50)}, ${day(51)})`, mend(0, 500), known([400]));
      });

      test('the finding cannot be taken out of the evidence, and the story of the slot tells it', async () => {
        const damage = [`update {rows} set {volume} = {volume} * 2 + 1 where ${of('A', 50)}`, mend(50, 51)];
        const newest = `series_id = :A and number = (select max(number) from market.evidence where series_id = :A)`;
        for (const detail of ['null', `replace(detail, '366', '365')`]) {
          const { all } = await mended(...damage, `update market.evidence set detail = ${detail} where ${newest}`);
          expect(all).toContainEqual(expect.stringContaining('is not linked to the step before it'));
        }
        const told = await mended(
          ...damage,
          `do $$ begin if not exists (select from market.story('coin-0', '{interval}', ${day(50)}) where event = 'mended'
          and detail like '%requested again (what was found differs from what was told: step 2 %') then raise 'not told'; end if; end $$`,
        );
        expect(told.all).toEqual([]);
      });
    });
  });
}
