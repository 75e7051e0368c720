/** `chandler gaps`: what is missing, why, and when it is asked again. */
import type { Command } from 'commander';
import type { Clock } from '../../clock.ts';
import type { Quote } from '../../core/candle.ts';
import type { Interval } from '../../core/interval.ts';
import type { Sql } from '../../store/connection/connect.ts';
import {
  GAP_REASONS,
  type Gap,
  type GapFilter,
  type GapReason,
  readGapRows,
  readGapTotals,
} from '../../views/operations/gaps.ts';
import { countSeries, type SeriesFilter } from '../../views/operations/series-filter.ts';
import { argument, parseChoice, parseInterval, parsePositiveInteger, parseQuote } from '../input/options.ts';
import { requireKnownCoins } from '../input/series-arguments.ts';
import { formatCount, formatCounted, formatDay, formatRelative, formatSeries } from '../output/format.ts';
import { printJsonArray, toIso } from '../output/json.ts';
import { formatTable, printable } from '../output/table.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT } from '../shell/exit.ts';
import type { Io, Output } from '../shell/io.ts';

type Options = {
  readonly interval?: Interval;
  readonly quote?: Quote;
  readonly reason?: GapReason;
  readonly limit?: number;
  readonly all?: boolean;
  readonly json?: boolean;
};

const ROWS_SHOWN = 50;
const parseReason = (text: string) => parseChoice(text, GAP_REASONS);

export function gapsCommand(program: Command, context: CommandContext): void {
  program
    .command('gaps')
    .description('list what is wanted and not there, with the reason')
    .argument('[coin...]', 'ids of coins, like btc-bitcoin; all when none is given')
    .option('--interval <interval>', 'only this width of candle', argument(parseInterval))
    .option('--quote <quote>', 'only this currency', argument(parseQuote))
    .option('--reason <reason>', `only this reason: ${GAP_REASONS.join(', ')}`, argument(parseReason))
    .option(
      '--limit <n>',
      `at most so many rows (default: ${ROWS_SHOWN}; with --json all)`,
      argument(parsePositiveInteger),
    )
    .option('--all', 'every row')
    .option('--json', 'print JSON')
    .action(
      context.action(async (coins: string[], options: Options) =>
        context.withApp({ schema: 'require' }, async ({ database: { sql } }) => {
          await requireKnownCoins(sql, coins);
          const { interval, quote, reason } = options;
          const filter: GapFilter = { coinIds: coins.length > 0 ? coins : undefined, interval, quote, reason };
          const limit = options.all ? null : (options.limit ?? (options.json ? null : ROWS_SHOWN));
          if (options.json) await printJsonArray(context.io.out, asJson(readGapRows(sql, filter, limit)));
          else await printGaps(context, sql, filter, limit);
          return EXIT.done;
        }),
      ),
    );
}

/** Also part of what `chandler demo` shows. */
export async function printGaps(
  { io, clock }: Pick<CommandContext, 'io' | 'clock'>,
  sql: Sql,
  filter: GapFilter,
  limit: number | null,
): Promise<void> {
  await printRows(io, readGapRows(sql, filter, limit), clock);
  const totals = await readGapTotals(sql, filter);
  if (totals.length > 0) printTotals(io, totals, limit);
  else io.out.write(`${await sayNone(sql, filter)}\n`);
}

/** No gap was found: because nothing was looked at, because none has that reason, or because there is none. */
async function sayNone(sql: Sql, { reason, ...filter }: GapFilter): Promise<string> {
  const series = await countSeries(sql, filter);
  if (series === 0)
    return (await countSeries(sql, {})) === 0 ? 'Nothing is wanted yet.' : `Nothing is wanted of ${named(filter)}.`;
  const whose = isNarrow(filter) ? ` of ${named(filter)}` : '';
  if (reason === undefined) return `No gaps: every slot that is wanted${whose} has its final answer.`;
  const slots = (await readGapTotals(sql, filter)).reduce((sum, total) => sum + total.slots, 0);
  const others = slots === 0 ? 'there are no gaps at all' : `${formatCounted(slots, 'slot')} missing for other reasons`;
  return `No gaps${whose} with the reason ${reason}; ${others}.`;
}

function isNarrow({ coinIds, interval, quote }: SeriesFilter): boolean {
  return coinIds !== undefined || interval !== undefined || quote !== undefined;
}

function named({ coinIds, interval, quote }: SeriesFilter): string {
  const candles = interval === undefined && quote === undefined ? [] : ['candles'];
  const series = [interval, ...candles, quote && `in ${quote}`].filter(Boolean).join(' ');
  return [coinIds?.join(', '), series].filter(Boolean).join(': ');
}

async function* asJson(rows: AsyncIterable<Gap>): AsyncGenerator<unknown> {
  for await (const gap of rows) {
    yield { ...gap, from: toIso(gap.from), to: toIso(gap.to), nextAskAt: toIso(gap.nextAskAt) };
  }
}

/** A table a page: widths are of the page, so that any number of rows can be printed as they come. */
async function printRows(io: Io, rows: AsyncIterable<Gap>, clock: Clock): Promise<void> {
  let page: string[][] = [];
  const notes = createNotes();
  const print = () => {
    if (page.length > 0) io.out.write(formatTable(COLUMNS, page, io.out.columns()));
    page = [];
  };
  for await (const gap of rows) {
    if (io.out.isClosed()) return;
    const now = clock.now();
    page.push([
      gap.coinId,
      formatSeries(gap),
      gap.from === null ? 'ever' : formatDay(gap.from),
      gap.to === null ? 'ever' : Math.abs(now - gap.to) < 60_000 ? 'now' : formatDay(gap.to),
      formatCount(gap.slots),
      `${gap.reason}${gap.detail === null ? '' : notes.markOf(gap.detail)}`,
      gap.nextAskAt === null ? '' : formatRelative(Math.max(gap.nextAskAt, now), now),
    ]);
    if (page.length === 1000) print();
  }
  print();
  notes.print(io.out);
}

const COLUMNS = [
  { title: 'coin' },
  { title: 'series', isWhole: true },
  { title: 'from', isWhole: true },
  { title: 'to', isWhole: true },
  { title: 'slots', align: 'right' as const },
  { title: 'reason', isWhole: true },
  { title: 'next ask' },
];

const MOST_NOTES = 20;

/** Long texts that many rows share: a mark in the row, the text once below the table. */
function createNotes() {
  const numbers = new Map<string, number>();
  let others = false;
  return {
    markOf: (text: string): string => {
      if (!numbers.has(text) && numbers.size === MOST_NOTES) {
        others = true;
        return '';
      }
      if (!numbers.has(text)) numbers.set(text, numbers.size + 1);
      return ` [${numbers.get(text)}]`;
    },
    print: (out: Output): void => {
      if (numbers.size === 0) return;
      out.write('\n');
      for (const [text, number] of numbers) out.write(`[${number}] ${printable(text)}\n`);
      if (others) out.write('More answers than these: --json has each of them.\n');
      out.write('\n');
    },
  };
}

function printTotals(io: Io, totals: Awaited<ReturnType<typeof readGapTotals>>, limit: number | null): void {
  const gaps = totals.reduce((sum, total) => sum + total.gaps, 0);
  const parts = totals.map((total) => `${formatCounted(total.slots, 'slot')} ${total.reason}`);
  const shown = limit !== null && gaps > limit ? ` (${formatCount(limit)} shown, --all shows every one)` : '';
  const tooYoung = totals.reduce((sum, total) => sum + total.tooYoung, 0);
  const young = tooYoung > 0 ? `; of these ${formatCounted(tooYoung, 'slot')} too young for a final answer` : '';
  io.out.write(`${formatCounted(gaps, 'gap')}${shown}: ${parts.join(', ')}${young}.\n`);
}
