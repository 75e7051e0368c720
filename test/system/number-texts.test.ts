/** Numbers that a double cannot hold as they are written: what becomes of each, from the answer to SQL and REST (decision 80). */
import { afterEach, expect, test } from 'vitest';
import { DAY, HOUR } from '../../src/core/interval.ts';
import { createService } from '../../src/service/service.ts';
import { createWarehouse } from '../../src/views/market/warehouse.ts';
import { openAccess } from '../service/conformance.ts';
import type { Script } from '../support/scripted.ts';
import { createScriptedWorld, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';

const COIN = 'btc-bitcoin';
const FIRST = TODAY - 10 * DAY;

let made: ScriptedWorld;
afterEach(() => made.world.close());

type Texts = Partial<Record<'open' | 'volume' | 'market_cap', string>>;

/** The requested rows, all alike except for the texts of `special`, by open time. */
function answering(special: ReadonlyMap<number, Texts>, widthMs: number): Script {
  return async (request, simulated) => {
    const { pathname, searchParams } = new URL(request.url);
    const answer = await simulated(request);
    if (!pathname.includes(`${COIN}/ohlcv`)) return answer;
    const rows: string[] = [];
    for (let at = Date.parse(searchParams.get('start')!); at <= Date.parse(searchParams.get('end')!); at += widthMs) {
      const { open = '2', volume = `${1000 + rows.length}`, market_cap = '7' } = special.get(at) ?? {};
      const close = new Date(at + widthMs - 1000).toISOString();
      rows.push(
        `{"time_open":"${new Date(at).toISOString()}","time_close":"${close}","open":${open},"high":3,"low":0,"close":${2 + rows.length / 64},` +
          `"volume":${volume},"market_cap":${market_cap}}`,
      );
    }
    const headers = new Headers(answer.headers);
    headers.delete('content-length');
    return new Response(`[${rows.join(',')}]`, { headers });
  };
}

async function filledWith(special: readonly Texts[], interval: '24h' | '12h' = '24h') {
  made = await createScriptedWorld({ speed: 50 });
  const widthMs = interval === '24h' ? DAY : 12 * HOUR;
  made.upstream.script = answering(new Map(special.map((texts, i) => [FIRST + i * widthMs, texts])), widthMs);
  const run = await (await made.world.open()).backfill({ coins: [COIN], interval, from: FIRST, to: FIRST + 4 * DAY });
  const { clock, database } = made.world;
  const data = createWarehouse({ sql: database.sql, clock });
  const onError = (error: unknown) => {
    throw error;
  };
  const service = createService({ data, access: openAccess, clock, onError });
  const day = new Date(FIRST).toISOString().slice(0, 10);
  return {
    run,
    sql: database.sql,
    /** The REST response for the first four days. */
    rest: async () => {
      const path = `coins/${COIN}/ohlcv/historical?start=${day}&end=${new Date(FIRST + 3 * DAY).toISOString()}`;
      const answer = await service(new Request(`http://service/v1/${path}`));
      return { status: answer.status, text: await answer.text() };
    },
    stored: () => database.sql<{ volume: string; marketCap: string }[]>`
      select volume::text, market_cap::text from market.candles order by open_time`,
  };
}

test('an integer beyond 2^53 becomes the nearest double, as every JSON reader has it; a fraction of zeros is dropped', async () => {
  const { run, stored, rest } = await filledWith([{ volume: '9007199254740993', market_cap: '556847817.0' }]);
  expect(run).toMatchObject({ end: { kind: 'done' }, failed: [] });
  expect((await stored())[0]).toEqual({ volume: '9.007199254740992e+15', marketCap: '556847817' });
  expect((await rest()).text).toContain('"volume":9007199254740992,"market_cap":556847817}');
});

test.each(['-0', '-0.0', '-0e5'])('%s is 0 everywhere', async (zero) => {
  const { sql, stored, rest } = await filledWith([{ volume: '0' }, { volume: zero }]);
  expect((await stored()).slice(0, 2).map(({ volume }) => volume)).toEqual(['0', '0']);
  expect((await rest()).text).not.toMatch(/:-0/);
  expect(await sql`select from market.quarantine`).toHaveLength(0);
});

test.each(['1e-400', `0.${'0'.repeat(400)}1`])(
  'a price of %.8s… does not become 0: its row is quarantined',
  async (tiny) => {
    const { run, sql, stored, rest } = await filledWith([{}, { open: tiny }]);
    expect(run.end).toEqual({ kind: 'done' });
    const [row] = await sql`select distinct reason, row->>'open' as open from market.quarantine`;
    expect(row!.reason).toMatch(/^\[\d\]\.open: expected number, got string "(1e-400|0\.0+…0+1) \(too small\)"$/);
    expect(row!.open).toMatch(/\(too small\)$/);
    expect(await sql`select reason, slots from market.gaps`).toEqual([{ reason: 'malformed', slots: 1 }]);
    expect(await stored()).toHaveLength(3);
    expect(JSON.parse((await rest()).text).map((candle: { open: number }) => candle.open)).toEqual([2, 2, 2]);
  },
);

test('the smallest double above 0 is kept', async () => {
  const { sql } = await filledWith([{ open: '5e-324' }]);
  expect(await sql`select open from market.candles order by open_time limit 1`).toEqual([{ open: 5e-324 }]);
});

test('a number too large for a double is quarantined, and a sum too large for a double is unknown', async () => {
  const { sql, rest } = await filledWith([{ volume: '1e308' }, { volume: '1e308' }, { volume: '1e400' }], '12h');
  expect(await sql`select reason from market.quarantine group by 1`).toEqual([
    { reason: 'volume is negative or not finite' },
  ]);
  expect(await sql`select max(volume) as most from market.candles`).toEqual([{ most: 1e308 }]);
  const { status, text } = await rest();
  expect(status).toBe(200);
  expect(JSON.parse(text).map((candle: { volume: number | null }) => candle.volume)).toEqual([
    null,
    ...[expect.any(Number), expect.any(Number)],
  ]);
});
