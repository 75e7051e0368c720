/**
 * Lies that only stored candles can betray, told once each, and only where P11 promises that they are found out (docs/proof.md): where the stored
 * neighbours of the answer say enough.
 */
import type { Clock } from '../../src/clock.ts';
import { parseTime } from '../../src/contract/time.ts';
import { DAY, INTERVAL_MS, type Interval } from '../../src/core/interval.ts';
import { type CandleQuestion, candleQuestion } from '../../src/simulator/faults/candle-question.ts';
import type { FaultName } from '../../src/simulator/faults/fault-spec.ts';
import { spoilRows, type WireRow } from '../../src/simulator/faults/faulty-rows.ts';
import { otherRows } from '../../src/simulator/faults/other-answer.ts';
import { createToldOnce } from '../../src/simulator/faults/told-once.ts';
import { hashText, mix, unit } from '../../src/simulator/hash.ts';
import type { Sql } from '../../src/store/connection/connect.ts';
import type { FetchFunction } from '../../src/upstream/wire.ts';

/** By what betrays them. */
const BESIDE = ['other-coin', 'scaled', 'shifted-day', 'constant', 'thinned'] as const satisfies readonly FaultName[];
export const LIES_BESIDE: readonly FaultName[] = BESIDE;

export type LiarOptions = {
  readonly seed: number;
  /** Of the answers about which such a lie may be told, so many are lies. */
  readonly share: number;
  readonly clock: Clock;
  readonly sql: Sql;
  /** The same market, always truthful. */
  readonly ask: FetchFunction;
  readonly told: (name: FaultName) => void;
};

/** `simulated`, which may fail by itself, with these lies. */
export function withLiesBeside(simulated: FetchFunction, options: LiarOptions): FetchFunction {
  const { seed, share, clock, sql, ask, told } = options;
  const attempts = new Map<string, number>();
  const toldOnce = createToldOnce();
  return async (request) => {
    const answer = await simulated(request);
    const question = candleQuestion(request);
    if (question === null || answer.status !== 200) return answer;
    const attempt = (attempts.get(request.url) ?? 0) + 1;
    attempts.set(request.url, attempt);
    const roll = mix(hashText(seed, request.url), attempt);
    if (unit(roll) >= share) return answer;
    const rows = await rowsOf(answer);
    if (rows === null) return answer;
    const beside = await readBeside(sql, question);
    if (beside === null) return answer;
    const first = Math.floor(unit(mix(roll, 1)) * BESIDE.length);
    for (const name of [...BESIDE.slice(first), ...BESIDE.slice(0, first)]) {
      const lie =
        spoilRows(name, rows, { now: clock.now(), roll, url: request.url }) ??
        (await otherRows(name, rows, { request, roll, ask }));
      if (lie === null || lie.length === 0 || !isFoundOut(name, lie, question.interval, beside)) continue;
      if (!toldOnce.mayTell(request)) return answer;
      told(name);
      const headers = new Headers(answer.headers);
      headers.delete('content-length');
      return Response.json(lie, { headers });
    }
    return answer;
  };
}

async function rowsOf(answer: Response): Promise<WireRow[] | null> {
  const text = await answer.clone().text();
  try {
    const body = JSON.parse(text) as unknown;
    return Array.isArray(body) && body.length > 0 ? (body as WireRow[]) : null;
  } catch {
    return null;
  }
}

type Row = {
  readonly at: number;
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
};
type Beside = { readonly final: readonly Row[]; readonly covered: number; readonly candles: number };

/** What is final in and around the question; null when the database cannot be asked just now. */
async function readBeside(sql: Sql, { coinId, quote, interval, from, to }: CandleQuestion): Promise<Beside | null> {
  const width = INTERVAL_MS[interval];
  const reach = Math.max(8 * width, DAY);
  try {
    const [row] = await sql<
      { final: [number, number, number, number, number][] | null; covered: number; candles: number }[]
    >`
      select s.covered_candles as candles,
        (select coalesce(sum(extract(epoch from upper(r) - lower(r))), 0)::float8 from unnest(s.covered) r) as covered,
        (select json_agg(json_build_array(extract(epoch from c.open_time), c.open, c.high, c.low, c.close) order by c.open_time)
          from market.candle c where c.series_id = s.id and c.interval = s.interval and s.covered @> c.open_time
            and c.open_time >= ${from - reach} and c.open_time < ${to + width + reach}) as final
      from market.series s
      where s.coin_id = ${coinId} and s.quote = ${quote} and s.interval = ${interval}::market.candle_interval`;
    if (row === undefined) return null;
    const final = (row.final ?? []).map(([at, open, high, low, close]) => ({ at: at * 1_000, open, high, low, close }));
    return { final, covered: (row.covered * 1_000) / width, candles: row.candles };
  } catch {
    // Its connections are cut all the time.
    return null;
  }
}

function isFoundOut(name: FaultName, lie: readonly WireRow[], interval: Interval, beside: Beside): boolean {
  const width = INTERVAL_MS[interval];
  const rows = lie.map(toRow).sort((a, b) => a.at - b.at);
  const [first, last] = [rows[0]!, rows.at(-1)!];
  const outside = beside.final.filter(({ at }) => at < first.at || at > last.at);
  switch (name) {
    case 'constant':
      return rows.length + outside.length >= 12 && !hasRepeats(outside) && outside.length > 0;
    case 'thinned': {
      const usual = beside.covered > 0 ? 1 - beside.candles / beside.covered : 0;
      const holes = rows.filter((row, i) => i > 0 && row.at - rows[i - 1]!.at > width).length;
      const most = rows.length >= 12 ? 3 * usual : beside.covered >= 200 ? 20 * usual : Number.POSITIVE_INFINITY;
      return holes / rows.length > Math.max(0.2, most) * 1.1;
    }
    default: {
      // A step at one of its ends, far larger than those of the market.
      const before = beside.final.find(({ at }) => at === first.at - width);
      const after = beside.final.find(({ at }) => at === last.at + width);
      const known = [...stepsIn(outside, width), ...stepsIn(rows, width)];
      const steps = [before && stepBetween(before, first), after && stepBetween(last, after)];
      const least = Math.max(0.025 * Math.sqrt(width / DAY), 0.01, 5 * Math.max(...known, 0));
      return known.length >= 6 && steps.some((step) => step !== undefined && step > 1.1 * least);
    }
  }
}

const toRow = ({ time_open, open, high, low, close }: WireRow): Row => ({
  at: parseTime(time_open),
  open: Number(open),
  high: Number(high),
  low: Number(low),
  close: Number(close),
});
const stepBetween = (older: Row, newer: Row) =>
  older.close > 0 && newer.open > 0 ? Math.abs(Math.log(newer.open / older.close)) : undefined;
const stepsIn = (rows: readonly Row[], width: number) =>
  rows.flatMap((row, i) => (i > 0 && row.at - rows[i - 1]!.at === width ? [stepBetween(rows[i - 1]!, row) ?? 0] : []));
const hasRepeats = (rows: readonly Row[]) =>
  rows.some(({ open, high, low, close }, i) => {
    const before = rows[i - 1];
    return before?.open === open && before.high === high && before.low === low && before.close === close;
  });
