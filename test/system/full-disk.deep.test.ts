/** A disk that fills up in the middle of a backfill. */
import { describe, expect, test } from 'vitest';
import { canMount, expectOneSentence, FULL, onDisk, upstream, useUpstream } from './full-disk.ts';

useUpstream();

describe.skipIf(!canMount)('the embedded server', () => {
  test('whose disk fills up in the middle of a backfill says so; with more room the next run ends complete and proven', {
    timeout: 480_000,
  }, async () => {
    const target = '--top 12 --start 2025-06-01 --end 2026-06-01 --interval 1h --yes';
    const [first, second, third] = await onDisk(
      // Room for an empty warehouse, a second file of Postgres' log (16 MB), and half of the candles.
      'size=70m,mode=755',
      `chandler backfill ${target}
       mount -o remount,size=400m /mnt
       chandler backfill ${target} --json
       chandler verify --json`,
    );
    expect(first!.code).toBe(1);
    expectOneSentence(first!.text, FULL);
    // Of 288 chunks each is asked for once, and those again that were under way when the disk was full: nobody asks for what cannot be stored.
    expect(upstream.asked()).toBeLessThan(288 + 20);
    // The last slots of coins that have died wait for a second answer.
    expect(second!.code, second!.text).toBe(75);
    const { backfill } = JSON.parse(second!.text.slice(second!.text.indexOf('{"'))) as {
      backfill: { end: string; gaps: { reason: string }[]; stored: number };
    };
    expect(backfill.end).toBe('done');
    expect(backfill.gaps.filter((gap) => gap.reason !== 'unconfirmed')).toEqual([]);
    expect(third!.code, third!.text).toBe(0);
    const proofs = JSON.parse(third!.text) as unknown;
    const series = (Array.isArray(proofs) ? proofs : (proofs as { series: unknown[] }).series) as { candles: number }[];
    const candles = series.reduce((sum, proof) => sum + proof.candles, 0);
    // Part of them had been stored before the disk was full, and was still there.
    expect(candles).toBeGreaterThan(backfill.stored);
  });
});
