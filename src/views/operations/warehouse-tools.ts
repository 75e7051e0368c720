/** What tools ask of the warehouse beyond the market: what is covered, what is missing and why, and SQL where that is allowed. */
import type { CoverageRow, GapRow, SeriesQuestion, WarehouseTools } from '../../contract/interface/warehouse-tools.ts';
import { formatTime } from '../../contract/time.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { parseMultirange } from '../../store/connection/multirange.ts';
import { type GapFilter, readGapRows } from './gaps.ts';
import { toInstant } from './instant.ts';
import { matching, type SeriesFilter } from './series-filter.ts';

export function createWarehouseTools(sql: Sql, runSql?: WarehouseTools['runSql']): WarehouseTools {
  return {
    coverage: (question) => readCoverage(sql, question),
    gaps: (question) => readGaps(sql, question),
    ...(runSql === undefined ? {} : { runSql }),
  };
}

async function readCoverage(sql: Sql, { limit, ...question }: SeriesQuestion): Promise<CoverageRow[]> {
  const rows = await sql<(Omit<CoverageRow, 'covered' | 'wanted_from' | 'wanted_to'> & Spans)[]>`
    select coin_id, symbol, quote, interval, slots_wanted, slots_covered, slots_missing, slots_unsettled,
      percent_complete::float8 as percent_complete, covered::text as covered,
      extract(epoch from wanted_from)::float8 as wanted_from, extract(epoch from wanted_to)::float8 as wanted_to
    from market.coverage
    where ${matching(sql, filterOf(question))}
    order by coin_id, quote, interval
    limit ${limit}`;
  return rows.map(({ wanted_from, wanted_to, covered, ...row }) => ({
    ...row,
    wanted_from: written(toInstant(wanted_from)),
    wanted_to: written(toInstant(wanted_to)),
    covered: parseMultirange(covered).map(({ from, to }) => ({ from: written(from), to: written(to) })),
  }));
}

type Spans = { readonly covered: string; readonly wanted_from: number | null; readonly wanted_to: number | null };

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

function written(at: number | null): string | null {
  return at === null || !Number.isFinite(at) ? null : formatTime(at);
}
