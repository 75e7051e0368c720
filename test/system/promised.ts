/**
 * What P11 promises about a lie, as docs/proof.md describes it ("What a false answer can do"), implemented separately: it calls none of the
 * product's checks.
 */
import { parseTime } from '../../src/contract/time.ts';
import {
  type CandleInterval,
  ceilToGrid,
  DAY,
  INTERVAL_MS,
  type Interval,
  isPriceInterval,
} from '../../src/core/interval.ts';
import type { FaultName } from '../../src/simulator/faults/fault-spec.ts';
import { isPriceRow, type WireRow } from '../../src/simulator/faults/faulty-rows.ts';
import type { RowQuestion } from '../../src/simulator/faults/row-question.ts';
import type { Sql } from '../../src/store/connection/connect.ts';

type Row = {
  readonly at: number;
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
};

/** What is stored beside an answer. */
export type Beside = {
  readonly final: readonly Row[];
  readonly covered: number;
  readonly candles: number;
  /** Other intervals of the coin, and their final slots. */
  readonly others: readonly {
    readonly interval: CandleInterval;
    readonly covered: readonly (readonly [number, number])[];
  }[];
};

/** Null when the database is unavailable just now. */
export async function readBeside(sql: Sql, { coinId, quote, interval, from, to }: RowQuestion): Promise<Beside | null> {
  const width = INTERVAL_MS[interval];
  const reach = Math.max(8 * width, DAY);
  try {
    const [row] = await sql<
      {
        final: [number, number, number, number, number][] | null;
        covered: number;
        candles: number;
        others: { interval: CandleInterval; covered: [number, number][] }[] | null;
      }[]
    >`
      select s.covered_candles as candles,
        (select coalesce(sum(extract(epoch from upper(r) - lower(r))), 0)::float8 from unnest(s.covered) r) as covered,
        (select json_agg(json_build_array(extract(epoch from c.open_time), c.open, c.high, c.low, c.close) order by c.open_time)
          from ops.stored(s.id, s.interval) c where s.covered @> c.open_time
            and c.open_time >= ${from - reach} and c.open_time < ${to + width + reach}) as final,
        (select json_agg(json_build_object('interval', o.interval, 'covered',
            (select json_agg(json_build_array(extract(epoch from lower(r)), extract(epoch from upper(r)))) from unnest(o.covered) r)))
          from market.series o where o.coin_id = s.coin_id and o.quote = s.quote and o.id <> s.id and o.covered <> '{}'
            and s.interval <= '24h' and o.interval <= '24h'
            and not exists (select from ops.second_opinion where claim = 'intervals differ')) as others
      from market.series s
      where s.coin_id = ${coinId} and s.quote = ${quote} and s.interval = ${interval}::market.candle_interval`;
    if (row === undefined) return null;
    return {
      final: (row.final ?? []).map(([at, open, high, low, close]) => ({ at: at * 1_000, open, high, low, close })),
      covered: (row.covered * 1_000) / width,
      candles: row.candles,
      others: (row.others ?? []).map((other) => ({
        interval: other.interval,
        covered: other.covered.map(([a, b]) => [a * 1_000, b * 1_000] as const),
      })),
    };
  } catch {
    // Its connections are cut all the time.
    return null;
  }
}

/** With so many rows an answer shows by itself what is usual. */
const MANY = 12;
/** Known steps from one candle to the next. */
const STEPS = 6;
/** A small margin beside each limit of the document. */
const CLEARLY = 1.05;

export function isPromised({
  name,
  lie,
  truth,
  interval,
  beside,
}: {
  readonly name: FaultName;
  readonly lie: readonly WireRow[];
  readonly truth: readonly WireRow[];
  readonly interval: Interval;
  readonly beside: Beside;
}): boolean {
  const width = INTERVAL_MS[interval];
  const rows = sorted(lie);
  const [first, last] = [rows[0]!, rows.at(-1)!];
  const outside = beside.final.filter(({ at }) => at < first.at || at > last.at);
  if (name === 'constant') {
    const isNews = beside.final.length === 0 || !beside.final.every((row) => isSame(row, first));
    if (rows.length >= MANY) return isNews;
    return rows.length > 1 && rows.length + outside.length >= MANY && isNews && !hasRepeats(outside);
  }
  if (name === 'thinned') {
    const holes = rows.filter((row, i) => i > 0 && row.at - rows[i - 1]!.at > width).length;
    const usual = beside.covered > 0 ? 1 - beside.candles / beside.covered : 0;
    const most = rows.length >= MANY ? 3 * usual : beside.covered >= 200 ? 20 * usual : Number.POSITIVE_INFINITY;
    return holes / rows.length > Math.max(0.2, most) * CLEARLY;
  }
  if (isUnlikeNext(rows, outside, beside, interval)) return true;
  // Prices are compared with no other series.
  return !isPriceInterval(interval) && isUnlikeOther(rows, sorted(truth), interval, beside);
}

/** A final candle lies next to it, and the step between the two is larger than any around. */
function isUnlikeNext(rows: readonly Row[], outside: readonly Row[], { final }: Beside, interval: Interval): boolean {
  const width = INTERVAL_MS[interval];
  const [first, last] = [rows[0]!, rows.at(-1)!];
  const before = final.find(({ at }) => at === first.at - width);
  const after = final.find(({ at }) => at === last.at + width);
  const known = [...stepsIn(outside, width), ...stepsIn(rows, width)].filter((step) => step <= OTHER_SIZE);
  const steps = [before && stepBetween(before, first), after && stepBetween(last, after)];
  const least = Math.max(0.025 * Math.sqrt(width / DAY), 0.01) * (isPriceInterval(interval) ? 3 : 1);
  const usual = known.length < STEPS ? 4 * least : Math.max(least, 5 * Math.max(...known));
  const most = Math.min(usual, OTHER_SIZE);
  return steps.some((step) => step !== undefined && step > CLEARLY * most);
}

/** Another interval has the whole stretch, and all prices of the lie are far from the true ones. */
function isUnlikeOther(
  rows: readonly Row[],
  truth: readonly Row[],
  interval: CandleInterval,
  { others }: Beside,
): boolean {
  const width = INTERVAL_MS[interval];
  const [from, to] = [rows[0]!.at, rows.at(-1)!.at + width];
  const trueAt = new Map(truth.map((row) => [row.at, row]));
  const isFar = rows.every((row) => {
    const other = trueAt.get(row.at);
    return (
      other !== undefined &&
      PRICES.every((price) => row[price] > 0 && other[price] > 0 && Math.abs(Math.log(row[price] / other[price])) > 0.2)
    );
  });
  return (
    isFar &&
    others.some((other) => {
      const wider = INTERVAL_MS[other.interval] > width ? other.interval : interval;
      const slot = ceilToGrid(from, wider);
      return slot + INTERVAL_MS[wider] <= to && other.covered.some(([a, b]) => a <= from && b >= to);
    })
  );
}

const PRICES = ['open', 'high', 'low', 'close'] as const;
/** As a logarithm: by a factor of more than 2.7. */
export const OTHER_SIZE = 1;

function sorted(rows: readonly WireRow[]): Row[] {
  return rows
    .map((row) => {
      if (isPriceRow(row)) {
        const price = Number(row.price);
        return { at: parseTime(row.timestamp), open: price, high: price, low: price, close: price };
      }
      const { time_open, open, high, low, close } = row;
      return {
        at: parseTime(time_open),
        open: Number(open),
        high: Number(high),
        low: Number(low),
        close: Number(close),
      };
    })
    .sort((a, b) => a.at - b.at);
}

const stepBetween = (older: Row, newer: Row) =>
  older.close > 0 && newer.open > 0 ? Math.abs(Math.log(newer.open / older.close)) : undefined;
const stepsIn = (rows: readonly Row[], width: number) =>
  rows.flatMap((row, i) => (i > 0 && row.at - rows[i - 1]!.at === width ? [stepBetween(rows[i - 1]!, row) ?? 0] : []));
const isSame = (a: Row, b: Row) => PRICES.every((price) => a[price] === b[price]);
const hasRepeats = (rows: readonly Row[]) => rows.some((row, i) => i > 0 && isSame(row, rows[i - 1]!));
