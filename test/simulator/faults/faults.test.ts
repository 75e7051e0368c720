import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import { parseHistoryLimit } from '../../../src/contract/answer/errors.ts';
import type { Handler } from '../../../src/contract/interface/handler.ts';
import { isConnectionReset } from '../../../src/contract/interface/handler.ts';
import { readOhlcvRows, writeOhlcvRows } from '../../../src/contract/record/ohlcv.ts';
import { DAY } from '../../../src/core/interval.ts';
import {
  FAULT_NAMES,
  type FaultName,
  happensOncePerCandle,
  parseFaultSpec,
} from '../../../src/simulator/faults/fault-spec.ts';
import { withFaults } from '../../../src/simulator/faults/faults.ts';
import { frozenClock } from '../../service/conformance.ts';

const now = Date.UTC(2024, 5, 1, 12);
const today = Date.UTC(2024, 5, 1);
const rows = Array.from({ length: 20 }, (_, i) => {
  const openTime = today - (19 - i) * DAY;
  return {
    openTime,
    closeTime: openTime + DAY - 1000,
    open: 10 + i,
    high: 13 + i,
    low: 9 + i,
    close: 12 + i,
    volume: 1000 * i,
    marketCap: null,
  };
});
const truth = writeOhlcvRows(rows);
const url = 'http://x/v1/coins/btc-bitcoin/ohlcv/historical?start=2024-05-13&end=2024-06-01&interval=24h';

/** A handler whose every answer has this one fault. */
function always(fault: FaultName, { mostInARow = 99, seed = 1 } = {}) {
  let calls = 0;
  const handler: Handler = async () => {
    calls++;
    return new Response(truth, { headers: { 'Content-Type': 'application/json', 'Cache-Control': 'public' } });
  };
  const faulty = withFaults(handler, {
    spec: { seed, rates: { [fault]: 1 }, mostInARow },
    clock: frozenClock(now),
    send: async (_, agoMs) => new Response(writeOhlcvRows(rows.slice(0, -1).map((row) => ({ ...row, volume: agoMs })))),
  });
  return {
    faulty,
    get: (to = url, signal?: AbortSignal) => faulty(new Request(to, signal ? { signal } : {})),
    calls: () => calls,
  };
}

async function rowsOf(answer: Response) {
  const read = readOhlcvRows(await answer.json());
  if (!read.ok) throw new Error(read.problem);
  return read.rows;
}

async function outcome(answer: Promise<Response>): Promise<unknown> {
  return answer.then(
    async (r) => [r.status, [...r.headers], await r.text()],
    (error: Error) => error.message,
  );
}

describe('each fault', () => {
  it.each([
    ['429', 429, /maximum request limit/, '1'],
    ['429-silent', 429, /maximum request limit/, null],
    ['402-spent', 402, /maximum request limit/, null],
    ['500', 500, /unexpected server error/, null],
    ['502', 502, /^<html>/, null],
  ] as const)('%s answers with that status', async (fault, status, body, retryAfter) => {
    const answer = await always(fault).get();
    expect([answer.status, answer.headers.get('retry-after'), answer.headers.get('cache-control')]).toEqual([
      status,
      retryAfter,
      'no-store',
    ]);
    expect(await answer.text()).toMatch(body);
  });

  it('402-history-limit says that nothing before yesterday is allowed', async () => {
    const answer = await always('402-history-limit').get();
    const { error } = (await answer.json()) as { error: string };
    expect([answer.status, parseHistoryLimit(error)]).toEqual([402, { notBefore: now - DAY + 1 }]);
  });

  it('reset rejects as fetch does', async () => {
    const error = await always('reset')
      .get()
      .catch((e: unknown) => e);
    expect(error).toBeInstanceOf(TypeError);
    expect(isConnectionReset(error)).toBe(true);
  });

  it('hang answers nothing until the client gives up', async () => {
    const { get, faulty } = always('hang');
    const controller = new AbortController();
    const answer = get(url, controller.signal);
    let settled = false;
    const watch = answer.catch(() => {
      settled = true;
    });
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
    expect([settled, faulty.injected()]).toEqual([false, { hang: 1 }]);
    controller.abort(new Error('enough'));
    await expect(answer).rejects.toThrow('enough');
    await watch;
  });

  it('truncated is JSON that ends too soon', async () => {
    const text = await (await always('truncated').get()).text();
    expect(truth.startsWith(text) && text.length < truth.length).toBe(true);
    expect(() => JSON.parse(text)).toThrow();
  });

  it('empty has no candles', async () => {
    expect(await (await always('empty').get()).text()).toBe('[]');
  });

  it('duplicates repeats candles exactly', async () => {
    const read = await rowsOf(await always('duplicates').get());
    expect(read.length).toBeGreaterThan(20);
    expect(new Set(read.map((row) => JSON.stringify(row.row))).size).toBe(20);
  });

  it('conflict gives two versions of one candle, one of them true', async () => {
    const read = await rowsOf(await always('conflict').get());
    expect([read.length, new Set(read.map((row) => row.openTime)).size]).toEqual([21, 20]);
    const strange = read.filter((row) => !truth.includes(JSON.stringify(row.row)));
    expect(strange).toHaveLength(1);
  });

  it('unsorted has the same candles in random order', async () => {
    const times = (await rowsOf(await always('unsorted').get())).map((row) => row.openTime!);
    expect(times).not.toEqual(rows.map((row) => row.openTime));
    expect(times.sort((a, b) => a - b)).toEqual(rows.map((row) => row.openTime));
  });

  it('impossible has some impossible rows, of every kind over time, and leaves the others unchanged', async () => {
    const kinds = new Set<string>();
    for (let seed = 0; seed < 60; seed++) {
      const read = await rowsOf(await always('impossible', { seed }).get());
      const bad = read.filter((row) => !truth.includes(JSON.stringify(row.row)));
      expect(bad.length).toBeGreaterThan(0);
      expect(bad.length).toBeLessThanOrEqual(3);
      for (const row of bad) {
        if (!row.ok) kinds.add('text');
        else if (row.openTime > now) kinds.add('future');
        else if (row.openTime % DAY !== 0) kinds.add('off grid');
        else if (row.low! < 0) kinds.add('negative price');
        else if (row.volume! < 0) kinds.add('negative volume');
        else if (row.high! < row.low!) kinds.add('high below low');
        else kinds.add(`possible: ${JSON.stringify(row)}`);
      }
    }
    expect([...kinds].sort()).toEqual([
      'future',
      'high below low',
      'negative price',
      'negative volume',
      'off grid',
      'text',
    ]);
  });

  it('revision changes only candles that have not settled', async () => {
    const read = await rowsOf(await always('revision').get());
    const changed = read.filter((row) => !truth.includes(JSON.stringify(row.row))).map((row) => row.openTime);
    expect(changed).toEqual([today - DAY, today]);
    const { get, faulty } = always('revision');
    const old = await (await get(url.replace('interval=24h', 'interval=5m'))).text();
    expect([old, faulty.injected()]).toEqual([truth, {}]);
  });

  it('stale is the answer of some minutes ago, and has its age', async () => {
    const answer = await always('stale').get();
    const age = Number(answer.headers.get('age'));
    expect(age % 60).toBe(0);
    expect(age).toBeGreaterThanOrEqual(120);
    expect(age).toBeLessThan(12 * 60);
    const read = await rowsOf(answer);
    expect(read).toHaveLength(19);
    expect(read[0]).toMatchObject({ volume: age * 1000 });
  });
});

describe('faults', () => {
  const spec = {
    seed: 7,
    // Whether a lie is told depends on the requests before it.
    rates: Object.fromEntries(
      FAULT_NAMES.filter((f) => f !== 'hang' && !happensOncePerCandle(f)).map((f) => [f, 0.05]),
    ),
    mostInARow: 3,
  };
  const make = () =>
    withFaults(async () => new Response(truth), {
      spec,
      clock: frozenClock(now),
      send: async () => new Response('[]'),
    });
  const address = (i: number) => `${url}&i=${i}`;

  it('are the same for the same seed, address and attempt, in whatever order requests come', async () => {
    const forward = make();
    const first: unknown[] = [];
    for (let attempt = 0; attempt < 4; attempt++)
      for (let i = 0; i < 40; i++) first.push(await outcome(forward(new Request(address(i)))));
    const byAddress = make();
    const second: unknown[] = [];
    for (let i = 39; i >= 0; i--)
      for (let attempt = 0; attempt < 4; attempt++)
        second[attempt * 40 + i] = await outcome(byAddress(new Request(address(i).replace('//x', '//elsewhere:81'))));
    expect(second).toEqual(first);
    expect(byAddress.injected()).toEqual(forward.injected());
    expect(Object.keys(forward.injected()).length).toBeGreaterThan(10);
  });

  it('happen as often as specified', async () => {
    const faulty = withFaults(async () => new Response(truth), {
      spec: { seed: 3, rates: { 500: 0.1 }, mostInARow: 99 },
      clock: frozenClock(now),
    });
    for (let i = 0; i < 3_000; i++) await faulty(new Request(address(i)));
    expect(faulty.injected()['500']).toBeGreaterThan(240);
    expect(faulty.injected()['500']).toBeLessThan(360);
  });

  it('are chosen anew for each attempt at one address', async () => {
    const faulty = withFaults(async () => new Response(truth), {
      spec: { seed: 3, rates: { 500: 0.5 }, mostInARow: 99 },
      clock: frozenClock(now),
    });
    for (let i = 0; i < 100; i++) await faulty(new Request(url));
    expect(faulty.injected()['500']).toBeGreaterThan(25);
    expect(faulty.injected()['500']).toBeLessThan(75);
  });

  it('stop for one request after so many in a row at one address', async () => {
    const { get } = always('500', { mostInARow: 3 });
    const statuses: number[] = [];
    for (let i = 0; i < 8; i++) statuses.push((await get()).status);
    expect(statuses).toEqual([500, 500, 500, 200, 500, 500, 500, 200]);
  });

  it('are applied after the handler has run, so that every request is counted', async () => {
    const { get, calls } = always('reset');
    for (let i = 0; i < 5; i++) await get().catch(() => undefined);
    expect(calls()).toBe(5);
  });

  it('leave an unsuccessful answer unchanged', async () => {
    const refusing = withFaults(async () => new Response('no', { status: 402 }), {
      spec: { seed: 1, rates: { empty: 1 }, mostInARow: 9 },
      clock: frozenClock(now),
    });
    expect(await (await refusing(new Request(url))).text()).toBe('no');
    expect(refusing.injected()).toEqual({});
  });
});

describe('the specification of faults', () => {
  it('consists of pairs of name and share', () => {
    expect(parseFaultSpec('429:0.02, reset:.01,seed=9,in-a-row=2')).toEqual({
      ok: true,
      spec: { seed: 9, rates: { 429: 0.02, reset: 0.01 }, mostInARow: 2 },
    });
    for (const nothing of ['', 'none'])
      expect(parseFaultSpec(nothing)).toMatchObject({ ok: true, spec: { rates: {} } });
  });

  it('divides `all` and `lies` among the faults of the group; every fault except a false history limit is in one of them', () => {
    const ratesOf = (text: string) => {
      const parsed = parseFaultSpec(text);
      return parsed.ok ? parsed.spec.rates : {};
    };
    const [all, lies] = [ratesOf('all:0.06'), ratesOf('lies:0.06')];
    for (const rates of [all, lies]) expect(Object.values(rates).reduce((a, b) => a + b, 0)).toBeCloseTo(0.06);
    expect([...Object.keys(all), ...Object.keys(lies)].sort()).toEqual(
      FAULT_NAMES.filter((name) => name !== '402-history-limit').sort(),
    );
    expect(Object.keys(lies)).toEqual(expect.arrayContaining(['wrong-interval', 'no-date']));
    expect(ratesOf('lies:0.06,half:0.1').half).toBeCloseTo(0.06 / Object.keys(lies).length + 0.1);
  });

  it.each([
    ['rest:0.1', /^faults: unknown fault "rest" \(did you mean reset\?\); there are all, lies, 429, .*no-date$/],
    ['constructor:0.1', /unknown fault "constructor"/],
    ['lie:0.1', /\(did you mean lies\?\)/],
    ['reset', /must be given as reset:0.01, from 0 to 1, got "reset"/],
    ['reset:2', /from 0 to 1, got "reset:2"/],
    ['reset:-1', /got "reset:-1"/],
    ['reset=0.1', /must be given as reset:0.01/],
    ['seed=x', /^faults: seed must be a whole number, got "x"$/],
    ['500:0.7,502:0.7', /add up to 1.4/],
    [':', /unknown fault ""/],
  ])('reports what is wrong with %j', (text, problem) => {
    expect(parseFaultSpec(text)).toEqual({ ok: false, problem: expect.stringMatching(problem) });
  });
});

test('docs/configuration.md describes every fault', () => {
  const text = readFileSync(join(import.meta.dirname, '../../../docs/configuration.md'), 'utf8');
  const table = text.slice(text.indexOf('## Faults of the simulator'));
  expect(FAULT_NAMES.filter((name) => !table.includes(`| \`${name}\``))).toEqual([]);
});
