import { afterEach, describe, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import type { BackfillProgress } from '../../src/ingest/backfill/progress.ts';
import { backfillTotals } from '../../src/store/backfill/backfill.ts';
import { createScriptedWorld, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import type { Chandler, World } from '../support/world.ts';

const CONCURRENCY = 4;
const SPAN = { from: TODAY - 203 * DAY, to: TODAY - 3 * DAY };

let world: World;
let upstream: ScriptedWorld['upstream'];

async function makeTwo(perSecond: number | null): Promise<[Chandler, Chandler]> {
  ({ world, upstream } = await createScriptedWorld({ limits: { perSecond } }));
  const open = () => world.open({ candlesPerRequest: 10 });
  return [await open(), await open()];
}

/** A run, what its progress bar showed last, and what it showed before that, when it knew only the work of its own process. */
async function run(chandler: Chandler, coins: readonly string[], signal?: AbortSignal) {
  let [shownBefore, shown]: (BackfillProgress | undefined)[] = [];
  const result = await chandler.backfill({
    ...SPAN,
    coins,
    concurrency: CONCURRENCY,
    ...(signal ? { signal } : {}),
    onProgress: (state) => {
      [shownBefore, shown] = [shown, state];
    },
  });
  return { ...result, shown: shown!, shownBefore: shownBefore! };
}

/** Requests by the run that they were for, as the ledger has them. */
async function ledger(): Promise<Record<string, number>> {
  const rows = await world.database.sql<{ name: string; spent: number }[]>`
    select name, sum(month_spent)::int as spent from ops.quota_spent where class = 'backfill' group by name`;
  return Object.fromEntries(rows.map(({ name, spent }) => [name, spent]));
}

/**
 * Checks that report, bar, records and ledger agree about each run, and that the records together agree with the upstream. The report of an
 * interrupted run does not have the chunks that the other run had begun for it and stored after that report: at most one for each worker.
 */
async function expectToAgree(runs: readonly Awaited<ReturnType<typeof run>>[]): Promise<void> {
  const spent = await ledger();
  let recordedByAll = 0;
  for (const { id, end, totals, shown, shownBefore } of runs) {
    const recorded = await backfillTotals(world.database.sql, id);
    recordedByAll += recorded.requests;
    if (end.kind === 'interrupted') {
      for (const count of ['requests', 'stored'] as const)
        expect(totals![count]).toBeGreaterThanOrEqual(shownBefore[count]);
      const later = recorded.requests - totals!.requests;
      expect(later).toBeGreaterThanOrEqual(0);
      expect(later).toBeLessThanOrEqual(CONCURRENCY);
    } else expect(totals).toEqual(recorded);
    expect({ requests: shown.requests, stored: shown.stored }).toEqual({
      requests: totals!.requests,
      stored: totals!.stored,
    });
    expect(spent[`backfill ${id}`] ?? 0).toBe(recorded.requests);
  }
  expect(recordedByAll).toBe(upstream.ohlcv().length);
}

export function testTwoRuns(perSecond: number | null): void {
  afterEach(() => world?.close());
  describe(`two runs on one queue that run each other’s chunks (${perSecond === null ? 'no pace' : `${perSecond} requests a second`})`, () => {
    test('report the requests made for each of them, whichever run sent them', async () => {
      const [one, two] = await makeTwo(perSecond);
      const runs = await Promise.all([run(one, ['btc-bitcoin']), run(two, ['eth-ethereum', 'ltc-litecoin'])]);
      for (const { end, planned, totals, shown } of runs) {
        expect(end).toEqual({ kind: 'done' });
        expect(totals!.requests).toBe(planned);
        expect(shown.chunksDone).toBe(planned);
      }
      await expectToAgree(runs);
    });

    test('report each request once when both want the same', async () => {
      const [one, two] = await makeTwo(perSecond);
      const runs = await Promise.all([
        run(one, ['btc-bitcoin', 'eth-ethereum']),
        run(two, ['eth-ethereum', 'btc-bitcoin']),
      ]);
      expect(runs.map(({ end }) => end)).toEqual([{ kind: 'done' }, { kind: 'done' }]);
      expect(upstream.ohlcv()).toHaveLength(40);
      await expectToAgree(runs);
    });

    test('report their requests also when one of them is interrupted', async () => {
      const [one, two] = await makeTwo(perSecond);
      const stop = new AbortController();
      upstream.script = () => {
        if (upstream.ohlcv().length === 12) stop.abort();
        return null;
      };
      const runs = await Promise.all([run(one, ['btc-bitcoin'], stop.signal), run(two, ['eth-ethereum'])]);
      expect(runs.map(({ end }) => end.kind)).toEqual(['interrupted', 'done']);
      expect(runs[1]!.totals!.requests).toBe(runs[1]!.planned);
      await expectToAgree(runs);
    });
  });
}
