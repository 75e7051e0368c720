/** `chandler gaps`: what is missing, why, and when Chandler requests it again. */
import type { Command } from 'commander';
import type { Clock } from '../../clock.ts';
import { formatCount, formatCounted, formatDay, formatRelative, formatSeries, withIso } from '../../core/format.ts';
import type { Sql } from '../../store/connection/connect.ts';
import {
  GAP_REASONS,
  type Gap,
  type GapFilter,
  type GapReason,
  type GapTotal,
  readGapRows,
  readGapTotals,
} from '../../views/operations/gaps.ts';
import { countSeries, hasManySeries } from '../../views/operations/series-filter.ts';
import { choice, parsePositiveInteger } from '../input/options.ts';
import { describeFilter, type NarrowOptions, narrowOptions, seriesFilter } from '../input/series-options.ts';
import { number, printable, printTable, text, whole } from '../output/table.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT } from '../shell/exit.ts';
import type { Io, Output } from '../shell/io.ts';
import { printJsonArray } from '../shell/json.ts';

type Options = NarrowOptions & {
  readonly reason?: GapReason;
  readonly limit?: number;
  readonly all?: boolean;
  readonly json?: boolean;
};

const ROWS_SHOWN = 50;
const ROWS_A_PAGE = 1_000;

export function gapsCommand(program: Command, context: CommandContext): void {
  narrowOptions(
    program.command('gaps').description('list the gaps: what is missing, why, and when it is requested again'),
  )
    .option('--reason <reason>', `only this reason: ${GAP_REASONS.join(', ')}`, choice(GAP_REASONS))
    .option('--limit <n>', `show at most n rows (default: ${ROWS_SHOWN}; with --json all rows)`, parsePositiveInteger)
    .option('--all', 'show every row')
    .option('--json', 'print JSON')
    .action(
      context.action(async (coins: string[], options: Options) =>
        context.withApp({ schema: 'require' }, async ({ database: { sql } }) => {
          const filter: GapFilter = { ...(await seriesFilter(sql, coins, options)), reason: options.reason };
          const limit = options.all ? null : (options.limit ?? (options.json ? null : ROWS_SHOWN));
          if (options.json) await printJsonArray(context.io.out, asJson(readGapRows(sql, filter, limit)));
          else await printGaps(context, sql, filter, limit);
          return EXIT.done;
        }),
      ),
    );
}

/** `chandler demo` shows it as well. */
export async function printGaps(
  { io, clock }: Pick<CommandContext, 'io' | 'clock'>,
  sql: Sql,
  filter: GapFilter,
  limit: number | null,
): Promise<void> {
  const shown = await printRows(io, readGapRows(sql, filter, limit), clock);
  if (shown === limit && (await hasManySeries(sql, filter))) {
    io.out.write(
      `${formatCounted(shown, 'gap')} shown. There are too many series to count all gaps at once: chandler status says how much is missing, --all shows and counts every gap.\n`,
    );
    return;
  }
  // With many series, each read of all of them takes long.
  const totals = shown === 0 ? [] : await readGapTotals(sql, filter);
  if (totals.length > 0) printTotals(io, totals, limit);
  else io.out.write(`${await describeNone(sql, filter)}\n`);
}

/** Why no gap was found: no series matches, no gap has that reason, or everything is covered. */
async function describeNone(sql: Sql, { reason, ...filter }: GapFilter): Promise<string> {
  if ((await countSeries(sql, filter)) === 0) {
    return (await countSeries(sql, {})) === 0
      ? 'There are no series yet.'
      : `There are no series of ${describeFilter(filter)}.`;
  }
  const isNarrow = Object.values(filter).some((value) => value !== undefined);
  const whose = isNarrow ? ` of ${describeFilter(filter)}` : '';
  if (reason === undefined) return `No gaps: every wanted slot${whose} has its final answer.`;
  if (await hasManySeries(sql, filter)) return `No gaps${whose} with the reason ${reason}.`;
  const slots = (await readGapTotals(sql, filter)).reduce((sum, total) => sum + total.slots, 0);
  const others = slots === 0 ? 'there are no gaps at all' : `${formatCounted(slots, 'slot')} missing for other reasons`;
  return `No gaps${whose} with the reason ${reason}; ${others}.`;
}

async function* asJson(rows: AsyncIterable<Gap>): AsyncGenerator<unknown> {
  for await (const gap of rows) yield withIso(gap, 'from', 'to', 'nextAskAt');
}

/** Prints a table per page, so that any number of rows can be printed as they arrive. Resolves to the number of rows. */
async function printRows(io: Io, rows: AsyncIterable<Gap>, clock: Clock): Promise<number> {
  const notes = createNotes();
  let shown = 0;
  let page: Gap[] = [];
  const print = () => {
    const now = clock.now();
    const end = (to: number) => (Math.abs(now - to) < 60_000 ? 'now' : formatDay(to));
    if (page.length > 0) {
      printTable(io.out, page, [
        text('coin', (gap) => gap.coinId),
        whole('series', formatSeries),
        whole('from', ({ from }) => (from === null ? 'ever' : formatDay(from))),
        whole('to', ({ to }) => (to === null ? 'ever' : end(to))),
        number('slots', (gap) => gap.slots),
        whole('reason', ({ reason, detail }) => `${reason}${detail === null ? '' : notes.markOf(detail)}`),
        text('next request', ({ nextAskAt }) =>
          nextAskAt === null ? '' : formatRelative(Math.max(nextAskAt, now), now),
        ),
      ]);
    }
    page = [];
  };
  for await (const gap of rows) {
    if (io.out.isClosed()) return shown;
    shown++;
    page.push(gap);
    if (page.length === ROWS_A_PAGE) print();
  }
  print();
  notes.print(io.out);
  return shown;
}

const MOST_NOTES = 20;

/** For long texts that many rows share: the row has a number, and the text appears once below the table. */
function createNotes() {
  const numbers = new Map<string, number>();
  let others = false;
  return {
    markOf: (note: string): string => {
      if (!numbers.has(note) && numbers.size === MOST_NOTES) {
        others = true;
        return '';
      }
      if (!numbers.has(note)) numbers.set(note, numbers.size + 1);
      return ` [${numbers.get(note)}]`;
    },
    print: (out: Output): void => {
      if (numbers.size === 0) return;
      out.write('\n');
      for (const [note, n] of numbers) out.write(`[${n}] ${printable(note)}\n`);
      if (others) out.write('There are more messages; --json shows all of them.\n');
      out.write('\n');
    },
  };
}

function printTotals(io: Io, totals: readonly GapTotal[], limit: number | null): void {
  const gaps = totals.reduce((sum, total) => sum + total.gaps, 0);
  const parts = totals.map((total) => `${formatCounted(total.slots, 'slot')} ${total.reason}`);
  const shown = limit !== null && gaps > limit ? ` (${formatCount(limit)} shown; --all shows every one)` : '';
  const tooYoung = totals.reduce((sum, total) => sum + total.tooYoung, 0);
  const recent = tooYoung > 0 ? `; of these, ${formatCounted(tooYoung, 'slot')} too recent for a final answer` : '';
  io.out.write(`${formatCounted(gaps, 'gap')}${shown}: ${parts.join(', ')}${recent}.\n`);
}
