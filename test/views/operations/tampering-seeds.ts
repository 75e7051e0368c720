/** Random changes of one bit or one row in every table that verify compares: a few in `npm test`, a thousand in `npm run test:deep`. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { INTERVAL_MS, type Interval } from '../../../src/core/interval.ts';
import { contains } from '../../../src/core/span.ts';
import type { TestDatabase } from '../../support/database.ts';
import { randomOf } from '../../support/random.ts';
import { addRolledUp, type BOTH, CANDLES, createWarehouse, inWords, type Kept, verifiedAfter } from './tampering.ts';

/** The lowest bit of a time in microseconds whose change also changes the whole seconds. */
const A_SECOND = 20;
const TWO_HOURS = 33;
const NUMBERS = ['open', 'high', 'low', 'close', 'volume', 'market_cap'] as const;

type Row = Readonly<Record<string, unknown>> & { readonly at: string; readonly openTime: number };
type Rows = Readonly<Record<'candles' | 'revisions' | 'rollups' | 'weeks' | 'evidence', Row[]>>;
type Change = {
  readonly damage: string;
  /** The slot that verify must name; absent if the data do not identify it. */
  readonly slot?: { readonly seriesId: number; readonly openTime: number; readonly width: number };
};

/** `at` of each row: the condition that selects this row alone. */
async function readRows({ sql }: TestDatabase, kept: Kept): Promise<Rows> {
  const candle = `format('series_id = %s and interval = %L and open_time = %L', series_id, interval, open_time) as at`;
  const price = `format('series_id = %s and time = %L', series_id, time) as at`;
  const prices = `select series_id, 'prices-1d' as interval, time as open_time, price as close, volume_24h as volume, market_cap, ${price}
    from market.price order by series_id, time`;
  const read = (text: string) => sql.unsafe<Row[]>(text) as Promise<Row[]>;
  return {
    candles: await read(
      kept === CANDLES ? `select *, ${candle} from market.candle order by series_id, interval, open_time` : prices,
    ),
    rollups: await read(`select *, ${candle} from market.rollup order by series_id, interval, open_time`),
    weeks: await read(
      `select *, format('coin_id = %L and quote = %L and period = %L and open_time = %L', coin_id, quote, period, open_time) as at
        from market.calendar_candle order by coin_id, quote, period, open_time`,
    ),
    revisions: await read(
      `select r.*, s.interval, format('id = %s', r.id) as at from market.revision r join market.series s on s.id = r.series_id
        where step is not null order by r.id`,
    ),
    evidence: await read(
      `select series_id, number, kind, detail, cardinality(step_seconds) as steps, now() as open_time,
        format('series_id = %s and number = %s', series_id, number) as at from market.evidence order by series_id, number`,
    ),
  };
}

/** The double with one bit changed, as an SQL literal. */
function flipped(value: number, bit: number): string {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  view.setBigUint64(0, view.getBigUint64(0) ^ (1n << BigInt(bit)));
  const changed = view.getFloat64(0);
  return `'${Object.is(changed, -0) ? '-0' : changed}'::float8`;
}

/** A timestamp XOR one bit: microseconds since 2000, as Postgres stores it. */
const flippedTime = (column: string, bit: number) => `timestamptz '2000-01-01Z' + interval '1 microsecond' *
  ((extract(epoch from ${column} - timestamptz '2000-01-01Z') * 1000000)::bigint # (1::bigint << ${bit}))`;

const flippedBytes = (column: string, bit: number) => `set_bit(${column}, ${bit}, 1 - get_bit(${column}, ${bit}))`;

type Pick = { readonly number: (below: number) => number; readonly of: <T>(values: readonly T[]) => T };

/** Each makes a change of its kind. Bits of a time lie below an hour, so that no row leaves its partition or takes the place of another. */
const KINDS: Readonly<Record<string, (rows: Rows, pick: Pick) => Change>> = {
  'a bit of a candle': ({ candles }, pick) => flipNumber('{rows}', pick.of(candles), pick, true),
  'a bit of the time of a candle': ({ candles }, pick) => ({
    damage: `update {rows} set {time} = ${flippedTime('{time}', pick.number(31))} where ${pick.of(candles).at}`,
  }),
  'a bit of a revision': ({ revisions }, pick) => flipNumber('market.revision', pick.of(revisions), pick, true),
  'a bit of the time of a revision': ({ revisions }, pick) => {
    const row = pick.of(revisions);
    // A mending may also keep rows off the grid, and the hash of a candle has whole seconds.
    const least = row.reason === 'mended' ? A_SECOND : 0;
    const bit = least + pick.number(31 - least);
    return { damage: `update market.revision set open_time = ${flippedTime('open_time', bit)} where ${row.at}` };
  },
  'a bit of the step of a revision': ({ revisions }, pick) => {
    const row = pick.of(revisions);
    return { damage: `update market.revision set step = step # (1 << ${pick.number(31)}) where ${row.at}` };
  },
  'a bit of a rollup': ({ rollups }, pick) => flipNumber('market.rollup', pick.of(rollups), pick, false),
  'a bit of a week or month': ({ weeks }, pick) => flipNumber('market.calendar_candle', pick.of(weeks), pick, false),
  'a bit of evidence': ({ evidence }, pick) => {
    const row = pick.of(evidence);
    const change = pick.of([
      `candles = candles # (1 << ${pick.number(31)})`,
      `digest = digest # (1::bigint << ${pick.number(64)})`,
      `locator = locator # (1::bigint << ${pick.number(64)})`,
      `known_at = ${flippedTime('known_at', pick.number(40))}`,
      `link = ${flippedBytes('link', pick.number(256))}`,
      `number = number # (1 << ${pick.of(freeBits(row, evidence))})`,
    ]);
    return { damage: `update market.evidence set ${change} where ${row.at}` };
  },
  'a bit of a step of several': ({ evidence }, pick) => {
    const row = pick.of(evidence.filter(({ steps }) => steps !== null));
    const place = 1 + pick.number(row.steps as number);
    return {
      damage: `update market.evidence set step_seconds[${place}] = step_seconds[${place}] # (1 << ${pick.number(31)}) where ${row.at}`,
    };
  },
  'the kind of a row of evidence': ({ evidence }, pick) => {
    const row = pick.of(evidence);
    const kind = pick.of(['answer', 'mended', 'retention', 'renamed', 'adopted'].filter((one) => one !== row.kind));
    return { damage: `update market.evidence set kind = '${kind}' where ${row.at}` };
  },
  'the detail of a row of evidence': ({ evidence }, pick) => {
    const row = pick.of(evidence);
    const detail = pick.of(['told twice', 'x', null].filter((one) => one !== row.detail));
    return {
      damage: `update market.evidence set detail = ${detail === null ? 'null' : `'${detail}'`} where ${row.at}`,
    };
  },
  'the slots of a row of evidence': ({ evidence }, pick) => {
    const days = `interval '${1 + pick.number(30)} days'`;
    const change = pick.of([
      `slots + tstzmultirange(tstzrange(upper(slots), upper(slots) + ${days}))`,
      `slots - tstzmultirange(tstzrange(upper(slots) - ${days}, upper(slots)))`,
      `tstzmultirange(tstzrange(lower(slots) - ${days}, upper(slots) - ${days}))`,
    ]);
    return { damage: `update market.evidence set slots = ${change} where ${pick.of(evidence).at}` };
  },
  'the as-of of a row of evidence': ({ evidence }, pick) => {
    const row = pick.of(evidence.filter(({ kind }) => kind === 'answer'));
    return { damage: `update market.evidence set as_of = ${flippedTime('as_of', pick.number(40))} where ${row.at}` };
  },
  'the request of a row of evidence': ({ evidence }, pick) => ({
    damage: `update market.evidence set fetch_id = fetch_id # (1 << ${pick.number(20)}) where ${pick.of(evidence).at} and fetch_id is not null;
      update market.evidence set fetch_id = null where fetch_id = (select max(fetch_id) from market.evidence)`,
  }),
  'coverage with a slot more or less': ({ candles }, pick) => {
    const row = pick.of(candles);
    const slot = `tstzmultirange(tstzrange(to_timestamp(${row.openTime / 1000}), to_timestamp(${row.openTime / 1000}) + interval '${INTERVAL_MS[row.interval as Interval] / 1000} seconds'))`;
    const other = `tstzmultirange(tstzrange(upper(covered), upper(covered) + interval '1 day'))`;
    return {
      damage: `update market.series set covered = ${pick.of([`covered - ${slot}`, `covered + ${other}`])} where id = ${row.seriesId}`,
    };
  },
  'a revision that was empty': ({ revisions }, pick) => ({
    damage: `update market.revision set was_empty = not was_empty where ${pick.of(revisions).at}`,
  }),
  'the reason of a revision': ({ revisions }, pick) => {
    const row = pick.of(revisions);
    const reason = pick.of(
      ['late answer', 'removed by upstream', 'mended', 'contradicted'].filter((one) => one !== row.reason),
    );
    return { damage: `update market.revision set reason = '${reason}' where ${row.at}` };
  },
  'the time of a revision': ({ revisions }, pick) => {
    const row = pick.of(revisions);
    // A mending may take a while.
    const least = row.reason === 'mended' ? TWO_HOURS : A_SECOND;
    const column = pick.of(['known_at', 'seen_at']);
    const change = `${column} = ${flippedTime(column, least + pick.number(40 - least))}`;
    return { damage: `update market.revision set ${change} where ${row.at}` };
  },
  'the request of a revision': ({ revisions }, pick) => ({
    damage: `update market.revision set fetch_id = coalesce(fetch_id, 0) # (1 << ${pick.number(20)}) where ${pick.of(revisions).at}`,
  }),
  'a bit of a series': ({ candles }, pick) => {
    const change = pick.of([
      `covered_candles = covered_candles # (1 << ${pick.number(31)})`,
      `candles = candles # (1 << ${pick.number(31)})`,
      `digest = digest # (1::bigint << ${pick.number(64)})`,
      `link = ${flippedBytes('link', pick.number(256))}`,
      `steps = steps # (1 << ${pick.number(31)})`,
    ]);
    return { damage: `update market.series set ${change} where id = ${pick.of(candles).seriesId}` };
  },
  'a bit of the digest of an answer': ({ evidence }, pick) => ({
    damage: `update market.evidence set body_sha256 = ${flippedBytes('body_sha256', pick.number(256))}
      where ${pick.of(evidence).at} and body_sha256 is not null;
      update ops.fetch set body_sha256 = ${flippedBytes('body_sha256', pick.number(256))}
      where id = (select max(fetch_id) from market.evidence)`,
  }),
  'a candle deleted': ({ candles }, pick) => {
    const row = pick.of(candles);
    return { damage: `delete from {rows} where ${row.at}`, slot: slotOf(row) };
  },
  'a candle inserted': ({ candles }, pick) => ({
    damage: `insert into {rows} ({time}, {values}, {key})
      select {time} + ${1 + pick.number(3_599)} * interval '1 second', {values}, {key}
      from {rows} where ${pick.of(candles).at}`,
  }),
  'a candle moved': ({ candles }, pick) => ({
    damage: `update {rows} set {time} = {time} + ${1 + pick.number(3_599)} * interval '1 second' where ${pick.of(candles).at}`,
  }),
  // After the last one: no two candles share a slot.
  'a candle moved to another slot': ({ candles }, pick) => {
    const row = pick.of(candles);
    const width = `interval '${INTERVAL_MS[row.interval as Interval] / 1000} seconds'`;
    return {
      damage: `update {rows} set {time} = (select max({time}) from {rows}
        where ${seriesOf(row)}) + ${1 + pick.number(3)} * ${width} where ${row.at}`,
      slot: slotOf(row),
    };
  },
  'a candle given to another series': ({ candles }, pick) => {
    const row = pick.of(candles);
    return {
      damage: `update {rows} set series_id = ${900 + pick.number(100)} where ${row.at}`,
      slot: slotOf(row),
    };
  },
  'two candles swapped': ({ candles }, pick) => {
    const one = pick.of(candles);
    const other = pick.of(candles.filter((row) => NUMBERS.some((name) => numberIn(row, name) !== numberIn(one, name))));
    const values = (row: Row) =>
      numbersOf(one)
        .map((name) => `{${name}} = ${literal(numberIn(row, name))}`)
        .join(', ');
    return {
      damage: `update {rows} set ${values(other)} where ${one.at}; update {rows} set ${values(one)} where ${other.at}`,
    };
  },
  'a revision deleted': ({ revisions }, pick) => ({
    damage: `delete from market.revision where ${pick.of(revisions).at}`,
  }),
  'a revision there twice': ({ revisions }, pick) => ({
    damage: `insert into market.revision (series_id, open_time, seen_at, known_at, step, reason, ${NUMBERS.join(', ')})
      select series_id, open_time, seen_at, known_at, step, reason, ${NUMBERS.join(', ')} from market.revision where ${pick.of(revisions).at}`,
  }),
  'a row of evidence deleted': ({ evidence }, pick) => ({
    damage: `delete from market.evidence where ${pick.of(evidence).at}`,
  }),
  // Retention may have removed the oldest request.
  'a request deleted': ({ evidence }, pick) => ({
    damage: `delete from ops.fetch where id = (select fetch_id from market.evidence
      where fetch_id is not null order by fetch_id limit 1 offset ${1 + pick.number(evidence.length - 3)})`,
  }),
  'a rollup deleted': ({ rollups }, pick) => ({ damage: `delete from market.rollup where ${pick.of(rollups).at}` }),
  'a week or month deleted': ({ weeks }, pick) => ({
    damage: `delete from market.calendar_candle where ${pick.of(weeks).at}`,
  }),
  'a day of what has its rollups taken out': ({ rollups }, pick) => ({
    damage: `update market.rollup_coverage c set spans = spans - tstzmultirange(tstzrange(r.open_time, r.open_time + interval '24 hours'))
      from market.rollup r where r.series_id = c.series_id and r.interval = c.interval and r.${pick.of(rollups).at.replaceAll(' and ', ' and r.')}`,
  }),
  'a series deleted': ({ candles }, pick) => ({
    damage: `delete from market.series where id = ${pick.of(candles).seriesId}`,
  }),
};

/** Rows have camelCase names. */
function numberIn(row: Row, name: (typeof NUMBERS)[number]): number | null {
  return row[name === 'market_cap' ? 'marketCap' : name] as number | null;
}

function flipNumber(table: string, row: Row, pick: Pick, isNamed: boolean): Change {
  const name = pick.of(NUMBERS.filter((one) => typeof numberIn(row, one) === 'number'));
  const column = table === '{rows}' ? `{${name}}` : name;
  const damage = `update ${table} set ${column} = ${flipped(numberIn(row, name)!, pick.number(64))} where ${row.at}`;
  return isNamed ? { damage, slot: slotOf(row) } : { damage };
}

/** The bits that can be changed in the number of a row of evidence without giving it that of another row, which the key forbids. */
function freeBits(row: Row, evidence: readonly Row[]): number[] {
  const taken = new Set(evidence.filter(({ seriesId }) => seriesId === row.seriesId).map(({ number }) => number));
  return Array.from({ length: 31 }, (_, bit) => bit).filter((bit) => !taken.has((row.number as number) ^ (1 << bit)));
}

/** The numbers that such a row has: a price has three. */
const numbersOf = (row: Row) => NUMBERS.filter((name) => numberIn(row, name) !== undefined);

/** The condition for all rows of the series. */
const seriesOf = ({ seriesId, at }: Row) => /^(.*) and \w+ = /.exec(at)?.[1] ?? `series_id = ${seriesId}`;

const slotOf = (row: Row) => ({
  seriesId: row.seriesId as number,
  openTime: row.openTime,
  width: INTERVAL_MS[row.interval as Interval],
});
const literal = (value: number | null) => (value === null ? 'null' : `'${value}'::float8`);

/** `count` seeds: the kinds take turns, and each change is undone before the next one. Prices have no rollups, weeks and months. */
export function testSeeds(count: number, both: typeof BOTH): void {
  describe.each(both)('of %s', (_of, kept) => {
    let database: TestDatabase;
    let rows: Rows;
    beforeAll(async () => {
      ({ database } = await createWarehouse(kept));
      if (kept === CANDLES) await addRolledUp(database);
      rows = await readRows(database, kept);
    });
    afterAll(() => database.drop());

    test('verify finds no difference in an untouched warehouse', async () => {
      expect((await verifiedAfter(database, 'select 1')).all).toEqual([]);
    });

    const kinds = Object.keys(KINDS).filter((name) => kept === CANDLES || !/rollup|week/.test(name));
    test.each(kinds)('verify finds every change of the kind: %s', async (name) => {
      const missed: string[] = [];
      for (let seed = kinds.indexOf(name); seed < count; seed += kinds.length) {
        const random = randomOf(seed);
        const number = (below: number) => Math.floor(random() * below);
        const change = KINDS[name]!(rows, { number, of: (values) => values[number(values.length)]! });
        const damage = inWords(change.damage, kept);
        const { proofs, all, unmended } = await verifiedAfter(database, damage);
        if (unmended.length > 0) missed.push(`seed ${seed}: not mended: ${damage}: ${unmended.join('; ')}`);
        if (all.length === 0) missed.push(`seed ${seed}: not found: ${damage}`);
        const { slot } = change;
        if (slot === undefined) continue;
        const named = proofs.find(({ seriesId }) => seriesId === slot.seriesId)?.stretches ?? [];
        // One slot, and no more.
        const isExact = contains(named, slot.openTime) && named.every(({ from, to }) => to - from <= slot.width);
        if (!isExact) missed.push(`seed ${seed}: slot not named: ${damage}: ${JSON.stringify(named)}`);
      }
      expect(missed).toEqual([]);
    });
  });
}
