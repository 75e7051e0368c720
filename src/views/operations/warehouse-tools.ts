/** The warehouse tools of agents: coverage, gaps with their reasons, the story of a candle, and SQL if it is allowed. */
import type { Clock, Instant } from '../../clock.ts';
import type {
  CoverageRow,
  ExplainQuestion,
  GapRow,
  SeriesQuestion,
  SlotStory,
  WarehouseTools,
} from '../../contract/interface/warehouse-tools.ts';
import { formatTime } from '../../contract/time.ts';
import type { Spans } from '../../core/span.ts';
import { type CamelCased, createRecordReader } from '../../store/connection/column-names.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { type GapFilter, readGapRows } from './gaps.ts';
import { matching, type SeriesFilter } from './series-filter.ts';
import { readPublicStory } from './story.ts';

export function createWarehouseTools({
  sql,
  clock,
  runSql,
}: {
  readonly sql: Sql;
  readonly clock: Clock;
  /** Undefined: SQL is not offered. */
  readonly runSql?: WarehouseTools['runSql'];
}): WarehouseTools {
  return {
    coverage: (question) => readCoverage(sql, question),
    gaps: (question) => readGaps(sql, question),
    explain: (question) => explain(sql, question, clock.now()),
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

/** A slot has a few events. One that was answered and revised for years could have more than a caller can use. */
const MOST_EVENTS = 1_000;

async function explain(
  sql: Sql,
  question: ExplainQuestion,
  now: Instant,
): Promise<SlotStory | 'no series' | 'not opened yet'> {
  if (question.at > now) return 'not opened yet';
  const story = await readPublicStory(sql, question, { now, most: MOST_EVENTS });
  if (story === null) return 'no series';
  return {
    coin_id: question.coinId,
    quote: question.quote,
    interval: question.interval,
    time_open: formatTime(story.from),
    time_close: formatTime(story.to - 1_000),
    events: story.events.map(({ at, event, detail }) => ({ at: formatTime(at), event, detail })),
  };
}

function filterOf({ coinId, quote, interval }: Omit<SeriesQuestion, 'limit'>): SeriesFilter & GapFilter {
  return { coinIds: coinId === undefined ? undefined : [coinId], quote, interval };
}

function written(at: Instant | null): string | null {
  return at === null || !Number.isFinite(at) ? null : formatTime(at);
}
