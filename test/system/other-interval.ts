/** The first answer of a series has no neighbours. Another stored interval of the same coin can reveal that it is false. */
import { afterEach, describe, expect, test } from 'vitest';
import { DAY, HOUR, type Interval } from '../../src/core/interval.ts';
import type { Script } from '../support/scripted.ts';
import { createScriptedWorld, type ScriptedWorld, TODAY } from '../support/scripted-world.ts';
import { checkStored } from './oracle.ts';

const COIN = 'btc-bitcoin';
const SPAN = { from: TODAY - 33 * DAY, to: TODAY - 3 * DAY } as const;
const PRICES = ['open', 'high', 'low', 'close'] as const;
type Row = Record<(typeof PRICES)[number], number> & { time_open: string; time_close: string };
type Simulated = Parameters<Script>[1];

let made: ScriptedWorld;

const rowsOf = async (answer: Promise<Response>) => (await (await answer).json()) as Row[];
/** The simulator's answer with other rows in its body. */
async function withRows(request: Request, simulated: Simulated, rows: Row[]): Promise<Response> {
  const headers = new Headers((await simulated(request)).headers);
  headers.delete('content-length');
  return Response.json(rows, { headers });
}
const times = (rows: Row[], factor: number) =>
  rows.map((row) => ({ ...row, ...Object.fromEntries(PRICES.map((name) => [name, row[name] * factor])) }));

/** The rows of `others` with the times of the requested rows. */
const LIES: Readonly<Record<string, (request: Request, simulated: Simulated) => Promise<Row[]>>> = {
  'a thousandth': async (request, simulated) => times(await rowsOf(simulated(request)), 1e-3),
  'another coin': (request, simulated) => rowsOf(simulated(new Request(request.url.replace(COIN, 'eth-ethereum')))),
  'another month': async (request, simulated) => {
    const url = new URL(request.url);
    for (const name of ['start', 'end']) {
      const at = new Date(url.searchParams.get(name)!).getTime() - 60 * DAY;
      url.searchParams.set(name, new Date(at).toISOString());
    }
    const [rows, others] = [await rowsOf(simulated(request)), await rowsOf(simulated(new Request(url)))];
    return rows.map(({ time_open, time_close }, i) => ({ ...others[i]!, time_open, time_close }));
  },
};

/** The rest of the answer is true. */
const FALSE_IN_PART: Readonly<Record<string, (rows: Row[]) => Row[]>> = {
  'one high': (rows) => rows.map((row, i) => (i === 100 ? { ...row, high: row.high * 1.9 } : row)),
  'one low': (rows) => rows.map((row, i) => (i === 100 ? { ...row, low: row.low / 1.9 } : row)),
  'nine days without a candle': (rows) => rows.filter((_, i) => i < 50 || i >= 50 + 9 * 24),
};

async function open(stored: Interval, coins: readonly string[] = [COIN]) {
  made = await createScriptedWorld({ speed: 300 });
  const chandler = await made.world.open();
  await chandler.backfill({ ...SPAN, coins, interval: stored });
  made.upstream.forget();
  return chandler;
}

const PAIRS = [
  ['24h', '1h'],
  ['1h', '24h'],
  ['6h', '1h'],
] as const;

/** In `npm test`: every lie about days, and one about each other interval. */
const isMain = (asked: Interval, lie: string) =>
  asked === '24h' || lie === (asked === '1h' ? 'another coin' : 'another month');

export function useWorld(): void {
  afterEach(() => made.world.close());
}

export function testFalseAnswers(which: 'main' | 'others'): void {
  const cases = PAIRS.flatMap(([asked, stored]) => Object.keys(LIES).map((name) => [asked, stored, name] as const));
  test.each(cases.filter(([asked, , name]) => isMain(asked, name) === (which === 'main')))(
    'a first answer about %s candles that is %s beside stored %s candles is not stored, and is requested again',
    async (asked, stored, name) => {
      const chandler = await open(stored);
      let told = 0;
      made.upstream.script = async (request, simulated) =>
        request.url.includes('/ohlcv') && told++ === 0
          ? withRows(request, simulated, await LIES[name]!(request, simulated))
          : simulated(request);
      expect(await chandler.backfill({ ...SPAN, coins: [COIN], interval: asked })).toMatchObject({
        end: { kind: 'done' },
        failed: [],
      });
      await checkStored(made.world, name);
      const sql = made.world.database.sql;
      expect(await sql`select from market.revision`).toHaveLength(0);
      expect(await sql`select from ops.fetch where outcome = 'implausible'`).toHaveLength(1);
      expect(await sql`select from ops.second_opinion where claim = 'intervals differ'`).toHaveLength(0);
    },
  );

  test.each(Object.keys(FALSE_IN_PART).filter((name) => (name === 'one high') === (which === 'main')))(
    'hours that are partly false are found out by the stored days: %s',
    async (name) => {
      const chandler = await open('24h');
      let told = 0;
      made.upstream.script = async (request, simulated) => {
        if (!request.url.includes('/ohlcv') || told++ > 0) return simulated(request);
        return withRows(request, simulated, FALSE_IN_PART[name]!(await rowsOf(simulated(request))));
      };
      const done = { end: { kind: 'done' }, failed: [] };
      expect(await chandler.backfill({ ...SPAN, coins: [COIN], interval: '1h' })).toMatchObject(done);
      await checkStored(made.world, name);
      expect(await made.world.database.sql`select from ops.fetch where outcome = 'implausible'`).toHaveLength(1);
    },
  );
}

/** Days that contradict the hours, in all answers. */
const days: Script = async (request, simulated) =>
  new URL(request.url).searchParams.get('interval') === '24h'
    ? withRows(request, simulated, times(await rowsOf(simulated(request)), 1.5))
    : simulated(request);
const implausible = () => made.world.database.sql`select from ops.fetch where outcome = 'implausible'`;

export function testOneCoin(): void {
  describe('an upstream whose days and hours never agree', () => {
    test('has one coin requested a second time within three weeks, and not in another week', async () => {
      made = await createScriptedWorld({ speed: 300 });
      const { clock } = made.world;
      const chandler = await made.world.open();
      await chandler.backfill({ ...SPAN, coins: [COIN], interval: '1h' });
      made.upstream.script = days;
      const found: number[] = [];
      for (let from = SPAN.from; from < SPAN.to; from += 3 * DAY) {
        await chandler.backfill({ coins: [COIN], from, to: from + 3 * DAY });
        found.push((await implausible()).length);
        clock.advanceTo(clock.now() + 4 * DAY);
      }
      // Two stretches a week.
      const last = found.at(-1)!;
      expect(last).toBeGreaterThanOrEqual(3);
      expect(last).toBeLessThanOrEqual(5);
      expect(found.slice(5).every((count) => count === last)).toBe(true);
    });
  });
}

export function testOtherAnswers(): void {
  test('an impossible row is not compared with the other interval: the other rows are stored, and its slot is requested again', async () => {
    const chandler = await open('1h');
    let told = 0;
    made.upstream.script = async (request, simulated) => {
      if (!request.url.includes('/ohlcv') || told++ > 0) return simulated(request);
      const rows = await rowsOf(simulated(request));
      return withRows(
        request,
        simulated,
        rows.map((row, i) => (i === 7 ? { ...row, high: row.low / 2 } : row)),
      );
    };
    expect(await chandler.backfill({ ...SPAN, coins: [COIN] })).toMatchObject({ end: { kind: 'done' }, failed: [] });
    await checkStored(made.world, 'impossible row');
    const { sql } = made.world.database;
    expect(await sql`select from ops.fetch where outcome = 'implausible'`).toHaveLength(0);
    const [first] = await sql`select stored, quarantined from ops.fetch where quarantined > 0`;
    expect(first).toEqual({ stored: 29, quarantined: 1 });
  });

  describe('an upstream whose days and hours never agree', () => {
    const coinsOf = async () =>
      (await made.world.simulator.data.coins()).filter((coin) => coin.is_active).map((coin) => coin.id);

    test('has three coins requested a second time, and no other', async () => {
      made = await createScriptedWorld({ speed: 300 });
      const chandler = await made.world.open();
      const coins = await coinsOf();
      expect(coins.length).toBeGreaterThan(4);
      await chandler.backfill({ ...SPAN, coins, interval: '1h' });
      made.upstream.script = days;
      for (const coin of coins) await chandler.backfill({ ...SPAN, coins: [coin] });
      expect(await implausible()).toHaveLength(3);
      const stored = await made.world.database.sql`
      select count(distinct coin_id)::int as coins from market.candles where interval = '24h'`;
      expect(stored).toMatchObject([{ coins: coins.length }]);
    });

    test('loses the claim of two coins when one answer agrees', async () => {
      made = await createScriptedWorld({ speed: 300 });
      const chandler = await made.world.open();
      const [first, second, third] = await coinsOf();
      await chandler.backfill({ ...SPAN, coins: [first!, second!, third!], interval: '1h' });
      const claims = () =>
        made.world.database.sql`select key, answers from ops.second_opinion where claim = 'intervals differ'`;
      made.upstream.script = days;
      for (const coin of [first!, second!]) await chandler.backfill({ ...SPAN, coins: [coin] });
      expect(await claims()).toEqual([{ key: '24h 1h', answers: 2 }]);
      made.upstream.script = (request, simulated) => simulated(request);
      await chandler.backfill({ ...SPAN, coins: [third!] });
      expect(await claims()).toEqual([]);
    });
  });

  test('hours that a day lacks are no difference', async () => {
    made = await createScriptedWorld({ speed: 300 });
    const chandler = await made.world.open();
    await chandler.backfill({ ...SPAN, coins: [COIN], interval: '1h', to: SPAN.from + 10 * DAY + 5 * HOUR });
    made.upstream.forget();
    expect(await chandler.backfill({ ...SPAN, coins: [COIN] })).toMatchObject({ end: { kind: 'done' } });
    expect(made.upstream.ohlcv()).toHaveLength(1);
  });
}
