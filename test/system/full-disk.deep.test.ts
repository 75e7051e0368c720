/** A disk that fills up in the middle of a backfill. */
import { describe, expect, test } from 'vitest';
import { canMount, expectOneSentence, FULL, onDisk, program, upstream, useUpstream } from './full-disk.ts';

useUpstream();

describe.skipIf(!canMount)('the embedded server', () => {
  test('whose disk fills up in the middle of a backfill says so; with more room the next run is complete and proven', {
    timeout: 480_000,
  }, async () => {
    const target = '--top 12 --start 2025-06-01 --end 2026-06-01 --interval 1h --yes';
    const [first, second, third] = await onDisk(
      // Room for an empty warehouse, a second WAL file of Postgres (16 MB), and half of the candles.
      'size=70m,mode=755',
      `chandler backfill ${target}
       mount -o remount,size=400m /mnt
       chandler backfill ${target} --json
       chandler verify --json`,
    );
    expect(first!.code).toBe(1);
    expectOneSentence(first!.text, FULL);
    // Each of 288 chunks is requested once, and those in flight when the disk was full once more. Nothing is requested that cannot be stored.
    expect(upstream.asked()).toBeLessThan(288 + 20);
    // The last slots of inactive coins wait for a second answer.
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
    // Some of them had been stored before the disk was full, and were still there.
    expect(candles).toBeGreaterThan(backfill.stored);
  });

  test('whose disk fills up under a service: the service says so, sends no requests, and goes on when there is room', {
    timeout: 480_000,
  }, async () => {
    const before = upstream.asked();
    const [, planned, log, proof] = await onDisk(
      'size=400m,mode=755',
      // The WAL of Postgres is on another disk: a full disk under the WAL ends the server.
      `chandler status
       mount -t tmpfs tmpfs /media
       mv /mnt/home/data/pg_wal /media/pg_wal && ln -s /media/pg_wal /mnt/home/data/pg_wal
       chandler backfill --top 12 --start 2025-06-01 --end 2026-06-01 --interval 1h --yes --detach --json
       mount -o remount,size=$(( $(df --output=used /mnt | tail -1) + 6000 ))k /mnt
       said() { until grep -q "$1" /media/log; do kill -0 $! || break; sleep 0.1; done; }
       CHANDLER_LISTEN=127.0.0.1:0 "${process.execPath}" "${program}" service 2> /media/log &
       said 'is full'
       mount -o remount,size=400m /mnt
       said 'the database recovered'
       said '"backfill 1: '
       kill $!; wait $!
       cat /media/log; echo "code 0"
       chandler verify --json`,
    );
    expect(planned!.code, planned!.text).toBe(0);
    const said = log!.text
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as { msg: string; state?: string; left?: number });
    const lines = said.map(({ msg }) => msg);
    expect(lines.filter((msg) => /^the database/.test(msg))).toEqual([
      expect.stringMatching(/^the database: the disk of .* is full; make room and Chandler continues automatically/),
      'the database recovered',
    ]);
    // Answers that had arrived were kept until there was room, and nothing was requested twice.
    expect(lines.filter((msg) => /^queue failed|^chunk failed/.test(msg))).toEqual([]);
    expect(lines).toContainEqual(expect.stringMatching(/^backfill 1: (done|queued)/));
    expect(upstream.asked() - before).toBeLessThan(288 + 20);
    expect(proof!.code, proof!.text).toBe(0);
  });
});
