/** A server or a cache repeats an old body under a new `Date`. Its last candle was still open then, and has settled since. */
import { afterEach, describe, expect, test } from 'vitest';
import { DAY, HOUR, INTERVAL_MS } from '../../src/core/interval.ts';
import { createScriptedWorld, NOW, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import { checkStored } from './oracle.ts';

const COIN = 'btc-bitcoin';
type Row = { time_open: string; time_close: string; open: number; high: number; low: number; close: number };

let made: ScriptedWorld;
afterEach(() => made.world.close());

const iso = (at: number) => new Date(at).toISOString().replace('.000', '');

/** The rows as they were at `at`: the last candle was open, and has not moved yet. */
function asAt(rows: readonly Row[], at: number): Row[] {
  const known = rows.filter(({ time_open }) => Date.parse(time_open) <= at);
  return known.map((row, i) => {
    const { open } = row;
    return i < known.length - 1 ? row : { ...row, time_close: iso(at), high: open, low: open, close: open };
  });
}

/** The first `times` answers have the rows of `at`: an instant, or how long before the answer. */
async function open(at: number | { readonly ago: number }, times: number) {
  made = await createScriptedWorld({ speed: 300 });
  const chandler = await made.world.open();
  let told = 0;
  made.upstream.script = async (request, simulated, clock) => {
    const answer = await simulated(request);
    if (!request.url.includes('/ohlcv') || ++told > times) return answer;
    const headers = new Headers(answer.headers);
    headers.delete('content-length');
    const then = typeof at === 'number' ? at : Math.floor((clock.now() - at.ago) / 60_000) * 60_000;
    return Response.json(asAt((await answer.json()) as Row[], then), { headers });
  };
  return chandler;
}
const implausible = () => made.world.database.sql`select message from ops.fetch where outcome = 'implausible'`;

describe('the last candle of an old body', () => {
  test.each([
    ['24h', TODAY - 20 * DAY, TODAY - 2 * DAY + 7 * HOUR + 4 * 60_000],
    ['1h', TODAY - 2 * DAY, NOW - 3 * HOUR + 25 * 60_000],
  ] as const)('does not become final: %s', async (interval, from, at) => {
    const chandler = await open(at, 1);
    const to = Math.ceil(NOW / INTERVAL_MS[interval]) * INTERVAL_MS[interval];
    expect(await chandler.backfill({ coins: [COIN], interval, from, to })).toMatchObject({ failed: [] });
    await checkStored(made.world, interval);
    expect(await implausible()).toEqual([
      { message: `the last candle says that it closes at ${new Date(at).toISOString()}` },
    ]);
    expect(made.upstream.ohlcv()).toHaveLength(2);
  });

  test('is not final, and costs no other request, if the data only lag minutes behind', async () => {
    const chandler = await open({ ago: 12 * 60_000 }, 1);
    await chandler.backfill({ coins: [COIN], interval: '5m', from: NOW - 4 * HOUR, to: NOW + 2 * HOUR });
    await checkStored(made.world, 'lag');
    expect(await implausible()).toEqual([]);
    expect(made.upstream.ohlcv()).toHaveLength(1);
  });

  test('is believed if a second answer has it, too: the coin stopped being traded then', async () => {
    const chandler = await open(TODAY - 9 * DAY + 7 * HOUR, 9);
    await chandler.backfill({ coins: [COIN], from: TODAY - 20 * DAY, to: TODAY - 3 * DAY });
    expect(made.upstream.ohlcv()).toHaveLength(2);
    const [row] = await made.world.database.sql`select covered_candles from market.series`;
    expect(row).toEqual({ coveredCandles: 12 });
  });
});
