/** `chandler backfills`: those that the service works off: list, pause, resume, cancel, priority. */
import type { Command } from 'commander';
import type { App } from '../../app.ts';
import type { Instant } from '../../clock.ts';
import { HIGHEST_PRIORITY, LOWEST_PRIORITY } from '../../core/tier.ts';
import { type BackfillChange, changeBackfill, prioritizeBackfill } from '../../store/work/backfill-queue.ts';
import { type BackfillRow, backfillAsJson, readBackfills } from '../../views/operations/backfills.ts';
import { argument, parseInteger, parsePriority } from '../input/options.ts';
import {
  formatCount,
  formatDay,
  formatInstant,
  formatPercent,
  formatRelative,
  formatSeries,
} from '../output/format.ts';
import { printJson } from '../output/json.ts';
import { formatTable } from '../output/table.ts';
import { waitingFor } from '../output/wait-reasons.ts';
import type { CommandContext } from '../shell/context.ts';
import { CommandFailed, EXIT, UsageError } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';

type JsonOption = { readonly json?: boolean };

const CHANGES: Readonly<Record<BackfillChange, { readonly does: string; readonly done: string }>> = {
  pause: { does: 'ask nothing more for it until it is resumed', done: 'is paused' },
  resume: { does: 'go on with one that was paused or cancelled, or has failed', done: 'waits for its turn' },
  cancel: { does: 'end it; what it has brought stays', done: 'is cancelled' },
};

export function backfillsCommand(program: Command, context: CommandContext): void {
  const backfills = program
    .command('backfills')
    .description(
      'the backfills that the service works off (chandler backfill --detach): list, pause, resume, cancel, priority',
    );
  backfills
    .command('list')
    .description('show what is to be done, most urgent first, how far it is and when it will be done')
    .option('--all', 'those that are over as well')
    .option('--json', 'print JSON')
    .action(
      context.action(async ({ all = false, json }: JsonOption & { readonly all?: boolean }) =>
        context.withApp({ schema: 'require' }, async ({ database: { sql }, clock }) => {
          const rows = await readBackfills(sql, { all });
          if (json) printJson(context.io.out, rows.map(backfillAsJson));
          else printBackfills(context.io.out, rows, clock.now(), all);
          return EXIT.done;
        }),
      ),
    );
  for (const change of ['pause', 'resume', 'cancel'] as const) {
    backfills
      .command(change)
      .description(CHANGES[change].does)
      .argument('<id>', 'its number, as the list has it', argument(parseId))
      .option('--json', 'print JSON')
      .action(
        context.action(async (id: number, { json }: JsonOption) =>
          context.withApp({ schema: 'require' }, async (app) => {
            const before = await changeBackfill(app.database.sql, id, change, app.clock.now());
            if (before === null) throw await whyNot(app, id, change);
            await tell(app, context.io.out, id, CHANGES[change].done, json);
            return EXIT.done;
          }),
        ),
      );
  }
  backfills
    .command('priority')
    .description('the highest goes first, before one that runs already')
    .argument('<id>', 'its number, as the list has it', argument(parseId))
    .argument('<n>', `from ${LOWEST_PRIORITY} to ${HIGHEST_PRIORITY}`, argument(parsePriority))
    .option('--json', 'print JSON')
    .action(
      context.action(async (id: number, priority: number, { json }: JsonOption) =>
        context.withApp({ schema: 'require' }, async (app) => {
          if (!(await prioritizeBackfill(app.database.sql, id, priority))) throw await whyNot(app, id, 'priority');
          await tell(app, context.io.out, id, `has priority ${priority}`, json);
          return EXIT.done;
        }),
      ),
    );
}

function parseId(text: string): number {
  return parseInteger(text, 1, 2 ** 31 - 1);
}

async function tell(app: App, out: Output, id: number, done: string, json = false): Promise<void> {
  const [row] = await readBackfills(app.database.sql, { all: true, id });
  if (json) printJson(out, backfillAsJson(row!));
  else out.write(`Backfill ${id} ${done}.\n`);
}

async function whyNot({ database: { sql } }: App, id: number, what: BackfillChange | 'priority'): Promise<Error> {
  const [row] = await readBackfills(sql, { all: true, id });
  if (row === undefined) return new UsageError(`There is no backfill ${id}; chandler backfills list --all has them.`);
  if (!row.isDetached)
    return new UsageError(
      `Backfill ${id} is one of a command (${row.owner}), not of the service; end it with Ctrl-C there.`,
    );
  const verb = what === 'priority' ? 'be given another priority' : `be ${what === 'cancel' ? 'cancelled' : `${what}d`}`;
  return new CommandFailed(`backfill ${id} is ${row.state} and cannot ${verb}`);
}

function printBackfills(out: Output, rows: readonly BackfillRow[], now: Instant, all: boolean): void {
  if (rows.length === 0) {
    out.write(
      all ? 'There was none yet.\n' : 'There is nothing to do; chandler backfills list --all shows what was done.\n',
    );
    return;
  }
  const right = { align: 'right' as const };
  const columns = [
    { title: 'id', ...right },
    { title: 'state', isWhole: true },
    { title: 'priority', ...right },
    { title: 'series', isWhole: true },
    { title: 'span', isWhole: true },
    { title: 'coins', ...right },
    { title: 'progress', ...right },
    { title: 'spent', ...right },
    { title: 'left', ...right },
    { title: 'candles', ...right },
    { title: 'done' },
  ];
  const table = rows.map((row) => [
    String(row.id),
    row.isDetached ? row.state : `${row.state} (command)`,
    row.isDetached ? String(row.priority) : '–',
    formatSeries(row),
    [row.from, row.to].map((at) => (at === null ? 'ever' : formatDay(at))).join(' … '),
    row.coins === null ? '–' : formatCount(row.coins),
    row.progress === null ? '–' : formatPercent(row.progress, 1),
    formatCount(row.spent),
    row.leftRequests === null || row.finishedAt !== null ? '–' : formatCount(row.leftRequests),
    formatCount(row.stored),
    whenDone(row, now),
  ]);
  out.write(formatTable(columns, table, out.columns()));
  for (const { id, message, waitUntil } of rows) {
    if (message === null) continue;
    const until =
      waitUntil === null ? '' : `waits until ${formatInstant(waitUntil)} (${formatRelative(waitUntil, now)}): `;
    out.write(`${id}: ${until}${waitingFor(message)}\n`);
  }
}

function whenDone({ finishedAt, finishAt, state }: BackfillRow, now: Instant): string {
  if (finishedAt !== null) return formatRelative(finishedAt, now);
  return finishAt === null || state === 'paused' ? '–' : formatRelative(finishAt, now);
}
