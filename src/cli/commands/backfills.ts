/** `chandler backfills`: lists the backfills that the service runs, and pauses, resumes, cancels or prioritises them. */
import type { Command } from 'commander';
import type { App } from '../../app.ts';
import {
  type AfterChange,
  cancelledAsJson,
  describeCancelled,
  recountAfterChange,
  settleCancelled,
} from '../../background/actions/after-change.ts';
import { describeNoService } from '../../background/operator/wait-explanation.ts';
import { formatMoment, waitingFor } from '../../background/operator/wait-reasons.ts';
import type { Instant } from '../../clock.ts';
import { formatPercent, formatRelative, formatSeries } from '../../core/format.ts';
import { HIGHEST_PRIORITY, LOWEST_PRIORITY } from '../../core/tier.ts';
import { type BackfillChange, changeBackfill, prioritizeBackfill } from '../../store/backfill/backfill-queue.ts';
import { liveInstances } from '../../store/work/instance.ts';
import { type BackfillRow, backfillAsJson, describeLeft, readBackfills } from '../../views/backfills/backfills.ts';
import { type HeldLock, lockSentence, readHeldLock } from '../../views/operations/blocking-sessions.ts';
import { describeRetries, formatFinish, formatSpan } from '../backfill/backfill-columns.ts';
import { showBackfill } from '../backfill/show.ts';
import { integer, parsePriority } from '../input/options.ts';
import { number, printable, printTable, text, whole } from '../output/table.ts';
import type { Answer, CommandContext } from '../shell/context.ts';
import { CommandFailed, UsageError } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';

const CHANGES: Readonly<Record<BackfillChange, { readonly does: string; readonly done: string }>> = {
  pause: { does: 'send no more requests for a backfill until it is resumed', done: 'paused' },
  resume: { does: 'continue a backfill that was paused or cancelled, or that failed', done: 'queued' },
  cancel: {
    does: 'end a backfill; the candles it stored stay, and its missing slots are not wanted any more, unless a tracking rule or another backfill wants them',
    done: 'cancelled',
  },
};

const CHANGING = { schema: 'require', changes: true } as const;

export function backfillsCommand(program: Command, context: CommandContext): void {
  const backfills = program
    .command('backfills')
    .description(
      'manage the backfills of the service (chandler backfill --detach): list, show, pause, resume, cancel, priority',
    );
  const list = backfills
    .command('list')
    .description('show the open backfills, most urgent first, with their progress and finish time')
    .option('--all', 'also show finished backfills');
  context.answer(list, async ({ database: { sql }, clock }, { all = false }: { readonly all?: boolean }) => {
    const now = clock.now();
    const lock = await readHeldLock(sql, now);
    const rows = await readBackfills(sql, { all, now });
    const hasService = (await liveInstances(sql, now)).some(({ roles }) => roles.includes('worker'));
    return {
      json: () => rows.map(backfillAsJson),
      text: (out) => printBackfills(out, rows, { now, all, hasService, lock }),
    };
  });
  context.answer(
    changeCommand(
      backfills,
      'show',
      'show one backfill: why it does not advance, where its chunks wait, its last failures',
    ),
    showBackfill,
  );
  for (const change of ['pause', 'resume', 'cancel'] as const) {
    context.answer(
      changeCommand(backfills, change, CHANGES[change].does),
      async (app, id: number) => {
        const before = await changeBackfill(app.database.sql, id, change, app.clock.now());
        if (before === null) throw await whyNot(app, id, change);
        if (change !== 'cancel') await recountAfterChange(app, id);
        const after = change === 'cancel' ? await settleCancelled(app, id) : null;
        return changed(app, id, `is ${CHANGES[change].done}`, after);
      },
      CHANGING,
    );
  }
  const prioritize = changeCommand(
    backfills,
    'priority',
    'change the priority; the highest runs first, even before a running backfill',
  ).argument('<n>', `from ${LOWEST_PRIORITY} to ${HIGHEST_PRIORITY}`, parsePriority);
  context.answer(
    prioritize,
    async (app, id: number, priority: number) => {
      if (!(await prioritizeBackfill(app.database.sql, id, priority))) throw await whyNot(app, id, 'priority');
      await recountAfterChange(app, id);
      return changed(app, id, `has priority ${priority}`);
    },
    CHANGING,
  );
}

function changeCommand(backfills: Command, name: string, description: string): Command {
  return backfills
    .command(name)
    .description(description)
    .argument('<id>', 'its number in the list', integer(1, 2 ** 31 - 1));
}

async function changed(app: App, id: number, what: string, after: AfterChange | null = null): Promise<Answer> {
  const [row] = await readBackfills(app.database.sql, { all: true, id });
  const lines = [`Backfill ${id} ${what}.`, ...(after === null ? [] : describeCancelled(after))];
  return {
    json: () => ({ ...backfillAsJson(row!), ...(after === null ? {} : cancelledAsJson(after)) }),
    text: (out) => out.write(lines.map((line) => `${line}\n`).join('')),
  };
}

async function whyNot({ database: { sql } }: App, id: number, what: BackfillChange | 'priority'): Promise<Error> {
  const [row] = await readBackfills(sql, { all: true, id });
  if (row === undefined) return new UsageError(`There is no backfill ${id}; chandler backfills list --all shows all.`);
  if (!row.isDetached) {
    return new UsageError(`Backfill ${id} belongs to a command (${row.owner}), not to the service; stop it there.`);
  }
  const verb = what === 'priority' ? 'be given another priority' : `be ${what === 'cancel' ? 'cancelled' : `${what}d`}`;
  return new CommandFailed(`backfill ${id} is ${row.state} and cannot ${verb}`);
}

type Shown = {
  readonly now: Instant;
  readonly all: boolean;
  readonly hasService: boolean;
  readonly lock: HeldLock | null;
};

function printBackfills(out: Output, rows: readonly BackfillRow[], { now, all, hasService, lock }: Shown): void {
  if (rows.length === 0) {
    out.write(all ? 'No backfills yet.\n' : 'No open backfills; chandler backfills list --all shows finished ones.\n');
    return;
  }
  printTable(out, rows, [
    number('id', (row) => String(row.id)),
    whole('state', (row) => (row.isDetached ? row.state : `${row.state} (command)`)),
    number('priority', (row) => (row.isDetached ? row.priority : null)),
    whole('series', formatSeries),
    whole('span', formatSpan),
    number('coins', (row) => row.coins),
    number('progress', (row) => (row.progress === null ? null : formatPercent(row.progress, 1))),
    number('spent', (row) => row.spent),
    number('left', describeLeft),
    number('rows', (row) => row.stored),
    text('done', (row) => formatFinish(row, now)),
  ]);
  for (const row of rows) {
    for (const remark of remarksOn(row, now)) out.write(`${row.id}: ${remark}\n`);
  }
  const waits = rows.some(({ state, isDetached }) => isDetached && (state === 'queued' || state === 'running'));
  if (lock !== null && rows.some(({ state }) => state === 'queued' || state === 'running'))
    out.write(`${printable(lockSentence(lock))}\n`);
  if (waits && !hasService) out.write(`${describeNoService(lock)}\n`);
}

function remarksOn(row: BackfillRow, now: Instant): string[] {
  const { message, waitUntil, finishAt, finishChange, finishChangedAt } = row;
  const until = waitUntil === null ? '' : `waits until ${formatMoment(waitUntil, now)}: `;
  const retries = describeRetries(row, now);
  return [
    ...(message === null ? [] : [`${until}${waitingFor(message)}`]),
    ...(retries === null ? [] : [retries]),
    ...(finishAt === null || finishChange === null
      ? []
      : [`its finish time changed ${formatRelative(finishChangedAt!, now)}: ${finishChange}`]),
  ];
}
