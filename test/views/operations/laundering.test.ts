/** An attacker writes rows that no link covers, to blame mended slots for a change. verify still finds the change. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestDatabase } from '../../support/database.ts';
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
  const mend = (from: number, to: number) => `select ops.uncover(:A, ${day(from)}, ${day(to)})`;
  const hashOf = (n: number) => `(select {hash} from {rows} where ${at(n)})`;
  /** The digest of the series is adapted to the change. */
  const change = (n: number) =>
    `update market.series set digest = ops.modulo_2_64(digest::numeric - ${hashOf(n)}) where id = :A;
   update {rows} set {close} = {close} * 1.001 where ${at(n)};
   update market.series set digest = ops.modulo_2_64(digest::numeric + ${hashOf(n)}) where id = :A`;
  /** What a backfill stores for the mended day: the same candle again, final. */
  const answerAgain = (n: number) =>
    `insert into ops.fetch (sent_at, as_of, account_id, endpoint, series_id, span, attempt, status, outcome, duration_ms, rows, stored, revised, quarantined, bytes, body_sha256)
     select sent_at, as_of, account_id, endpoint, series_id, tstzrange(${day(n)}, ${day(n + 1)}), attempt, status, outcome, duration_ms, 1, 1, 0, 0, bytes, body_sha256
     from ops.fetch where id = (select max(fetch_id) from market.evidence where series_id = :A);
   select ops.record_answer(:A, '{interval}', f.span, tstzmultirange(f.span), tstzmultirange(f.span), '{}', now(), f.as_of, f.id, f.body_sha256,
     t.candles, t.digest, 0, null)
   from ops.fetch f cross join lateral ops.sums(:A, '{interval}', f.span, '{}', '{}') t where f.id = (select max(id) from ops.fetch)`;
  /** The locator of step 2, which identifies the differing slot, is changed to point at another one. */
  const blame = (changed: number, other: number) =>
    `update market.evidence e set locator = ops.modulo_2_64(e.locator::numeric
     + ((h.now & 4294967295) - (h.before & 4294967295)) * ((extract(epoch from ${day(changed)}) - extract(epoch from ${day(other)})) / 86400)::bigint::numeric)
   from hashes h where e.series_id = :A and e.number = 2`;
  const withHashes = (n: number, statements: string) =>
    `create temporary table hashes on commit drop as select ${hashOf(n)} as before, 0::bigint as now;
   ${statements}; update hashes set now = ${hashOf(n)}`;

  async function verified(...statements: string[]) {
    const found = await verifiedAfter(database, inWords(statements.join(';\n'), kept).replaceAll(':A', `${a}`));
    const mine = found.proofs.find(({ seriesId }) => seriesId === a)!;
    return { ...mine, all: found.all, unmended: found.unmended };
  }

  test('verify finds a changed final candle although the locator points at a slot that was mended before', async () => {
    const honest = [mend(50, 51), answerAgain(50)];
    expect((await verified(...honest)).differences).toEqual([]);
    const found = await verified(...honest, withHashes(60, change(60)), blame(60, 50));
    expect(found.differences).toEqual([
      expect.stringMatching(/(candles|prices) differ from the answer .* \(step 2\)$/),
    ]);
    expect(found.stretches).toContainEqual({ from: slot(51).from, to: slot(100).from });
    expect(found.unmended).toEqual([]);
  });

  test('verify finds a changed final candle even after the slot that the locator points at was mended', async () => {
    const forged = [withHashes(60, change(60)), blame(60, 50)];
    expect((await verified(...forged)).stretches).toEqual([slot(50)]);
    const found = await verified(...forged, mend(50, 51), answerAgain(50));
    expect(found.differences).toEqual([
      expect.stringMatching(/mended a slot that was right, so another slot differs from step 2$/),
    ]);
    expect(found.stretches).toContainEqual({ from: slot(51).from, to: slot(100).from });
    expect(found.unmended).toEqual([]);
  });

  test('verify finds numbers that no step has, and repair still works', async () => {
    const found = await verified(
      change(60),
      `update market.evidence set number = number - 1000 where series_id = :A`,
      `update market.revision set step = step - 1000 where series_id = :A`,
      `update market.series set steps = steps - 1000 where id = :A`,
    );
    expect(found.differences).toContainEqual('step -999 of the evidence has an impossible number');
    expect(found.unmended).toEqual([]);
  });

  test.each([
    ['of the series', 'update market.series set steps = 2147483647 where id = :A'],
    ['of a row of evidence', 'update market.evidence set number = 2147483647 where series_id = :A and number = 9'],
    ['of a revision', `update market.revision set step = 2147483647 where series_id = :A and open_time = ${day(371)}`],
  ])('verify finds the largest possible number %s, and repair still works', async (_, damage) => {
    const found = await verified(damage);
    expect(found.differences).not.toEqual([]);
    expect(found.unmended).toEqual([]);
  });

  test.each([
    ['in 2300', `slots + '{[2300-01-01Z,2300-01-05Z)}'`],
    ['in 1960', `slots + '{[1960-01-01Z,1960-01-05Z)}'`],
    ['in a year that no date of JavaScript has', `slots + '{[280000-01-01Z,290000-01-01Z)}'`],
    ['without an end', `slots + '{[2300-01-01Z,)}'`],
  ])('verify finds evidence about slots that no answer is about, %s, and repair still works', async (_, slots) => {
    const found = await verified(`update market.evidence set slots = ${slots} where series_id = :A and number = 1`);
    expect(found.differences).not.toEqual([]);
    expect(found.unmended).toEqual([]);
  });

  test('verify finds a revision without a time, and repair still works', async () => {
    const found = await verified(
      `update market.revision set open_time = 'infinity' where series_id = :A and open_time = ${day(371)}`,
    );
    expect(found.differences).toContainEqual(expect.stringContaining('a revision has no time'));
    expect(found.unmended).toEqual([]);
  });

  test('a second repair of the whole series does not remove candles because the first one found another coin', async () => {
    const swapped = `update market.series set coin_id = coin_id || '?' where id in (select id from market.series);
    update market.series set coin_id = case coin_id when 'coin-0?' then 'coin-1' else 'coin-0' end where true`;
    const again = answerAgain(50);
    const { provisional, candles } = await verified(swapped, 'select ops.uncover(:A)', again, 'select ops.uncover(:A)');
    // The first repair has removed all candles; those of later answers stay.
    expect({ provisional, candles }).toEqual({ provisional: 0, candles: 0 });
    const later = await verified('select ops.uncover(:A)', answerAgain(50), 'select ops.uncover(:A)');
    expect(later.provisional).toBe(736);
  });
});
