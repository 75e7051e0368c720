/** `ops.uncover` mends the span that it is given, and leaves all other differences. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import type { TestDatabase } from '../../support/database.ts';
import { FIRST_DAY, newDailySeries, storeAnswer } from '../../support/stored-answers.ts';
import { BOTH, createWarehouse, inWords, iso, slot, verifiedAfter } from './tampering.ts';

describe.each(BOTH)('of %s', (_of, kept) => {
  let database: TestDatabase;
  let a = 0;
  beforeAll(async () => {
    ({ database, a } = await createWarehouse(kept));
  });
  afterAll(() => database.drop());

  const day = (n: number) => `'${iso(n)}'::timestamptz`;
  const at = (n: number) => `series_id = :A and {time} = ${day(n)}`;
  const INVENTED = `insert into {rows} ({time}, {values}, {key}) select {time} + interval '15 days', {values}, {key}
  from {rows} where series_id = :A and {time} >= ${day(726)} and {time} < ${day(736)}`;
  /** A candle that is not final, as an answer stores it. */
  const PROVISIONAL = `insert into {rows} ({time}, {values}, {key}) select {time} + interval '1 day', {values}, {key}
    from {rows} where ${at(735)};
  update market.series set candles = candles + 1, digest = ops.modulo_2_64(digest::numeric + (select
    {hash} from {rows} where ${at(736)})) where id = :A`;
  const changed = (n: number) => `update {rows} set {volume} = {volume} * 2 + 1 where ${at(n)}`;
  const mend = (from: number, to: number) => `select ops.uncover(:A, ${day(from)}, ${day(to)})`;
  /** What verify finds after the statements. */
  async function verified(...statements: string[]) {
    const { proofs, all } = await verifiedAfter(database, inWords(statements.join(';'), kept).replaceAll(':A', `${a}`));
    return { all, ...proofs.find(({ seriesId }) => seriesId === a)! };
  }
  const NOT_ADDING_UP = expect.stringContaining('do not match the digest of the series');
  const removed = (n: number) => expect.stringMatching(new RegExp(`outside coverage, .*: ${n} removed \\(digest`));

  test.each([
    ['a day that is right', mend(50, 51), 0],
    ['a day that was changed', `${changed(50)}; ${mend(50, 51)}`, 1],
    ['a day before that, that was changed and mended', `${changed(50)}; ${mend(50, 51)}; ${mend(60, 61)}`, 1],
  ])('rows outside coverage stay a difference after repair %s', async (_, repair, notes) => {
    const found = await verified(PROVISIONAL, INVENTED, repair);
    expect(found.all).toEqual([NOT_ADDING_UP]);
    expect(found.stretches).toContainEqual({ from: slot(736).from, to: slot(750).to });
    expect(found.notes).toHaveLength(notes);
  });

  test('the statements that verify prints remove rows outside coverage, and the evidence records it', async () => {
    const { stretches } = await verified(PROVISIONAL, INVENTED);
    const repairs = stretches.map(
      ({ from, to }) => `select ops.uncover(:A, '${new Date(from).toISOString()}', '${new Date(to).toISOString()}')`,
    );
    const found = await verified(PROVISIONAL, INVENTED, ...repairs);
    expect(found).toMatchObject({ all: [], provisional: 0, notes: [removed(11)] });
    // Also when another slot was mended before, whose candle is outside coverage now.
    const later = await verified(changed(50), INVENTED, mend(50, 51), ...repairs);
    expect(later).toMatchObject({ all: [], provisional: 1, notes: [expect.stringMatching('told'), removed(10)] });
    // And when another difference remains.
    const partly = await verified(INVENTED, changed(50), ...repairs);
    expect(partly.stretches).toEqual([slot(50)]);
    expect(await verified(INVENTED, changed(50), ...repairs, mend(50, 51))).toMatchObject({ all: [], provisional: 1 });
  });

  test('repair the whole series turns its changed digest from a difference into a note', async () => {
    const forged = 'update market.series set digest = digest + 1 where id = :A';
    expect((await verified(forged, mend(50, 51))).all).toEqual([NOT_ADDING_UP]);
    const found = await verified(forged, 'select ops.uncover(:A)');
    expect(found).toMatchObject({ all: [], notes: [removed(0)], provisional: 736 });
  });

  test('candles that are not final and add up stay, also beside other differences', async () => {
    expect(await verified(PROVISIONAL, mend(0, 800))).toMatchObject({
      all: [],
      notes: [],
      candles: 0,
      provisional: 737,
    });
    const found = await verified(PROVISIONAL, changed(50), mend(700, 800));
    expect(found).toMatchObject({ provisional: 37, stretches: [slot(50)], notes: [] });
  });

  test('changed values of two answers can be mended one after the other', async () => {
    const two = [PROVISIONAL, changed(50), changed(400)];
    expect((await verified(...two, mend(50, 51))).stretches).toEqual([slot(400)]);
    expect(await verified(...two, mend(50, 51), mend(400, 401))).toMatchObject({ all: [], provisional: 3 });
    const ofOne = [PROVISIONAL, changed(50), changed(60)];
    expect((await verified(...ofOne, mend(50, 51))).all).not.toEqual([]);
    expect(await verified(...ofOne, mend(50, 51), mend(0, 366))).toMatchObject({ all: [] });
    const again = await verified(PROVISIONAL, changed(50), mend(50, 51), changed(60), mend(60, 61));
    expect(again.all).not.toContainEqual(NOT_ADDING_UP);
  });

  test('after an answer from a clock that was ahead, repair leaves no difference', async () => {
    const { sql } = database;
    const id = await newDailySeries(sql, 'late-coin');
    await ensurePartitions(sql, '24h', { from: FIRST_DAY, to: FIRST_DAY + 30 * DAY });
    const tomorrow = (Date.now() - FIRST_DAY) / DAY + 1;
    await storeAnswer(sql, id, [0, 10], tomorrow);
    await sql`select ops.uncover(${id}, ${FIRST_DAY + 5 * DAY}::timestamptz, ${FIRST_DAY + 6 * DAY}::timestamptz)`;
    // The step of the repair cannot be older than the one before it.
    const [step] =
      await sql`select known_at > now() + interval '20 hours' as is_ahead from market.evidence where series_id = ${id} and kind = 'mended'`;
    expect(step).toEqual({ isAhead: true });
    expect((await verified('select 1')).all).toEqual([]);
  });
});
