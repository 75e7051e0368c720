/** The warehouse tools of agents: coverage, gaps with their reasons, and SQL where that is allowed. */
import type { Instant } from '../../clock.ts';
import type { CoverageRow, GapRow, SeriesQuestion, WarehouseTools } from '../../contract/interface/warehouse-tools.ts';
import { formatTime } from '../../contract/time.ts';
import type { Spans } from '../../core/span.ts';
import { type CamelCased, createRecordReader } from '../../store/connection/column-names.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { type GapFilter, readGapRows } from './gaps.ts';
import { matching, type SeriesFilter } from './series-filter.ts';

export function createWarehouseTools(sql: Sql, runSql?: WarehouseTools['runSql']): WarehouseTools {
  return {
    coverage: (question) => readCoverage(sql, question),
    gaps: (question) => readGaps(sql, question),
    ...(runSql === undefined ? {} : { runSql }),
  };
}

async function readCoverage(sql: Sql, { limit, ...question }: SeriesQuestion): Promise<CoverageRow[]> {
  const rows = await sql<(CamelCased<CoverageFacts> & Bounds)[]>`
    select coin_id, symbol, quote, interval, slots_wanted, slots_covered, slots_missing, slots_unsettled,
      percent_complete::float8, covered, wanted_from, wanted_to
    from market.coverage
    where ${matching(sql, filterOf(question))}
    order by coin_id, quote, interval
    limit ${limit}`;
  return rows.map((row) => ({
    ...factsOf(row),
    wanted_from: written(row.wantedFrom),
    wanted_to: written(row.wantedTo),
    covered: row.covered.map(({ from, to }) => ({ from: written(from), to: written(to) })),
  }));
}

type CoverageFacts = Omit<CoverageRow, 'covered' | 'wanted_from' | 'wanted_to'>;
type Bounds = {
  readonly covered: Spans;
  readonly wantedFrom: Instant | null;
  readonly wantedTo: Instant | null;
};

const factsOf = createRecordReader<CoverageFacts>([
  'coin_id',
  'symbol',
  'quote',
  'interval',
  'slots_wanted',
  'slots_covered',
  'slots_missing',
  'slots_unsettled',
  'percent_complete',
]);

async function readGaps(sql: Sql, { limit, ...question }: SeriesQuestion): Promise<GapRow[]> {
  const rows: GapRow[] = [];
  for await (const gap of readGapRows(sql, filterOf(question), limit)) {
    rows.push({
      coin_id: gap.coinId,
      symbol: gap.symbol,
      quote: gap.quote,
      interval: gap.interval,
      gap_from: written(gap.from),
      gap_to: written(gap.to),
      slots: gap.slots,
      reason: gap.reason,
      detail: gap.detail,
      next_ask_at: written(gap.nextAskAt),
    });
  }
  return rows;
}

function filterOf({ coinId, quote, interval }: Omit<SeriesQuestion, 'limit'>): SeriesFilter & GapFilter {
  return { coinIds: coinId === undefined ? undefined : [coinId], quote, interval };
}

function written(at: Instant | null): string | null {
  return at === null || !Number.isFinite(at) ? null : formatTime(at);
}
