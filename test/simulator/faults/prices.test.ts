/** The faults of a price series: what a client sees of each; a lie is told once. */
import { describe, expect, it } from 'vitest';
import { priceHistoryParameters, priceHistoryPath } from '../../../src/contract/interface/paths.ts';
import { readPriceRows } from '../../../src/contract/record/price.ts';
import { DAY, INTERVAL_MS, type PriceInterval } from '../../../src/core/interval.ts';
import { answersOtherRequest } from '../../../src/ingest/chunk/other-request.ts';
import { validate } from '../../../src/ingest/chunk/validate.ts';
import { createSimulator } from '../../../src/simulate.ts';
import type { FaultName } from '../../../src/simulator/faults/fault-spec.ts';
import { frozenClock } from '../../service/conformance.ts';

const now = Date.UTC(2024, 5, 1, 12);
const today = Date.UTC(2024, 5, 1);
const SPAN = { from: today - 40 * DAY, to: today - 10 * DAY };

type Row = {
  readonly timestamp: string;
  readonly price: unknown;
  readonly volume_24h: unknown;
  readonly market_cap: unknown;
};

/** The made-up market, where every answer has this fault whenever it is possible. */
function spoiled(fault: FaultName | null, seed = 1) {
  const simulator = createSimulator({
    market: 'made-up',
    clock: frozenClock(now),
    coins: 12,
    unlimited: true,
    ...(fault === null ? {} : { faults: { seed, rates: { [fault]: 1 }, mostInARow: 99 } }),
    onError: (error) => {
      throw error;
    },
  });
  return async (interval: PriceInterval = 'prices-1d', span = SPAN, coin = 'btc-bitcoin') => {
    const query = new URLSearchParams(priceHistoryParameters({ ...span, interval, quote: 'usd' }));
    const answer = await simulator.fetch(new Request(`http://x/v1${priceHistoryPath(coin)}?${query}`));
    return (await answer.json()) as Row[];
  };
}
const truth = spoiled(null);
const times = (rows: readonly Row[]) => rows.map(({ timestamp }) => timestamp);
const valuesOf = ({ price, volume_24h, market_cap }: Row) => [price, volume_24h, market_cap];

describe('a fault of a price series', () => {
  it('empty has no prices, duplicates repeats some, unsorted has the same in random order', async () => {
    const all = await truth();
    expect(all).toHaveLength(30);
    expect(await spoiled('empty')()).toEqual([]);
    const doubled = await spoiled('duplicates')();
    expect(doubled.length).toBeGreaterThan(30);
    expect(new Set(times(doubled))).toEqual(new Set(times(all)));
    const unsorted = await spoiled('unsorted')();
    expect(unsorted).not.toEqual(all);
    expect([...unsorted].sort((a, b) => a.timestamp.localeCompare(b.timestamp))).toEqual(all);
  });

  it('conflict has one slot twice, with two prices', async () => {
    const rows = await spoiled('conflict')();
    const twice = rows.filter(({ timestamp }) => times(rows).filter((at) => at === timestamp).length > 1);
    expect(twice).toHaveLength(2);
    expect(twice[0]!.price).not.toBe(twice[1]!.price);
  });

  it('impossible rows are quarantined one by one, whatever is wrong with them', async () => {
    const reasons = new Set<string>();
    for (let seed = 0; seed < 60; seed++) {
      const read = readPriceRows(await spoiled('impossible', seed)());
      const { quarantined } = validate(
        { coinId: 'btc-bitcoin', interval: 'prices-1d', span: SPAN },
        read.ok ? read.rows : [],
        now,
      );
      expect(quarantined.length).toBeGreaterThan(0);
      for (const { reason } of quarantined) reasons.add(reason.replace(/\[\d+\]|, got .*/g, ''));
    }
    expect([...reasons].sort()).toEqual([
      '.price: expected number',
      'a price is negative or not finite',
      'has no price',
      'market_cap is negative or not finite',
      'timestamp is not on the 1d grid',
      'timestamp lies in the future',
      'volume is negative or not finite',
    ]);
  });

  it.each([
    ['all-null', null],
    ['all-zero', 0],
  ] as const)('%s has the right slots without their values', async (fault, value) => {
    const rows = await spoiled(fault)();
    expect(times(rows)).toEqual(times(await truth()));
    for (const row of rows) expect(valuesOf(row)).toEqual([value, value, value]);
  });

  it('constant, scaled, thinned and half', async () => {
    const all = await truth();
    expect(new Set((await spoiled('constant')()).map((row) => JSON.stringify(valuesOf(row)))).size).toBe(1);
    const factors = new Set<number>();
    for (let seed = 0; seed < 8; seed++) {
      const [row] = await spoiled('scaled', seed)();
      factors.add(Number((Number(row!.price) / Number(all[0]!.price)).toPrecision(3)));
    }
    expect([...factors].sort((a, b) => a - b)).toEqual([1e-3, 1e6]);
    expect(await spoiled('thinned')()).toEqual(all.filter((_, i) => i % 2 === 0));
    expect(await spoiled('half')()).toEqual(all.slice(0, 15));
  });

  it('other-coin has the prices of another coin, shifted-day those of a day before or after', async () => {
    const rows = await spoiled('other-coin')();
    expect(rows).not.toEqual(await truth());
    const wide = await truth('prices-1d', { from: SPAN.from - DAY, to: SPAN.to + DAY });
    const shifts = new Set<number>();
    for (let seed = 0; seed < 8; seed++) {
      const shifted = await spoiled('shifted-day', seed)();
      expect(times(shifted)).toEqual(times(await truth()));
      const [first] = shifted.map((row) => JSON.stringify(valuesOf(row)));
      shifts.add(wide.findIndex((row) => JSON.stringify(valuesOf(row)) === first));
    }
    expect([...shifts].sort()).toEqual([0, 2]);
  });

  it('wrong-interval has rows of another width, enough of them to show it', async () => {
    const widths = new Set<number>();
    for (let seed = 0; seed < 40; seed++) {
      for (const [interval, span] of [
        ['prices-1d', SPAN],
        ['prices-1h', { from: today - 12 * DAY, to: today - 10 * DAY }],
        ['prices-1h', { from: today - 11 * DAY, to: today - 10 * DAY }],
      ] as const) {
        const rows = await spoiled('wrong-interval', seed)(interval, span);
        const all = await truth(interval, span);
        if (JSON.stringify(rows) === JSON.stringify(all)) continue;
        const read = readPriceRows(rows);
        const found = answersOtherRequest(interval, read.ok ? read.rows : [], { date: now, latest: now });
        expect(found, `${interval} seed ${seed}: ${times(rows).slice(0, 4)}`).toMatch(/^its rows are/);
        widths.add(Date.parse(rows[1]!.timestamp) - Date.parse(rows[0]!.timestamp));
      }
    }
    expect(widths.size).toBeGreaterThan(6);
    expect(widths).toContain(INTERVAL_MS['prices-5m']);
  });

  it('revision changes only what has not settled', async () => {
    const span = { from: today - 10 * DAY, to: today + DAY };
    const [rows, all] = [await spoiled('revision')('prices-1d', span), await truth('prices-1d', span)];
    const changed = rows.flatMap((row, i) =>
      JSON.stringify(row) === JSON.stringify(all[i]) ? [] : [Date.parse(row.timestamp)],
    );
    expect(changed.length).toBeGreaterThan(0);
    expect(Math.min(...changed)).toBeGreaterThan(now - 2 * DAY);
  });

  it('tells a lie once about each slot, whatever the request; about the slots beside it another one', async () => {
    const lying = spoiled('all-null');
    expect((await lying())[0]!.price).toBeNull();
    expect(await lying()).toEqual(await truth());
    const shorter = { from: SPAN.from + 3 * DAY, to: SPAN.to };
    expect(await lying('prices-1d', shorter)).toEqual(await truth('prices-1d', shorter));
    // The end of a request is exclusive: no lie was told about the slot there.
    const next = { from: SPAN.to, to: SPAN.to + 3 * DAY };
    expect((await lying('prices-1d', next))[0]!.price).toBeNull();
    expect((await lying('prices-6h'))[0]!.price).toBeNull();
  });
});
