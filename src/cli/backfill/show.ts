/** `chandler backfills show <id>`: one backfill, why it does not advance, where its chunks wait, and its last failures. */
import type { App } from '../../app.ts';
import { readBackfillReport } from '../../background/dashboard/backfill-report.ts';
import { formatMoment, waitingFor } from '../../background/operator/wait-reasons.ts';
import { readBudget } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import {
  formatCount,
  formatCounted,
  formatDay,
  formatPercent,
  formatRelative,
  formatSeries,
} from '../../core/format.ts';
import { type BackfillDetails, detailsAsJson } from '../../views/backfills/backfill-details.ts';
import { describeLeft } from '../../views/backfills/backfills.ts';
import { number, printable, printPairs, printTable, text, whole } from '../output/table.ts';
import type { Answer } from '../shell/context.ts';
import { UsageError } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';
import { formatFinish, formatSpan } from './backfill-columns.ts';

/** @throws UsageError when no backfill has this number */
export async function showBackfill(app: App, id: number): Promise<Answer> {
  const report = await readBackfillReport(app, id, await readBudget(app));
  if (report === null) throw new UsageError(`There is no backfill ${id}; chandler backfills list --all shows all.`);
  const { details, reasons } = report;
  const now = app.clock.now();
  return { json: () => detailsAsJson(details, reasons), text: (out) => printDetails(out, details, reasons, now) };
}

function printDetails(out: Output, details: BackfillDetails, reasons: readonly string[], now: Instant): void {
  const { row } = details;
  const coins = row.coins === null ? '' : `, ${formatCounted(row.coins, 'coin')}`;
  out.write(`Backfill ${row.id}: ${formatSeries(row)}, ${formatSpan(row)}${coins}\n\n`);
  printPairs(out, pairsOf(details, now));
  out.write('\n');
  for (const reason of reasons) out.write(`${printable(reason)}\n`);
  printWaits(out, details, now);
  printFailures(out, details, now);
}

function pairsOf({ row, chunks }: BackfillDetails, now: Instant): [string, string][] {
  const { owner, requestedBy, leftRequests, heartbeatAt } = row;
  const by = row.state === 'running' ? ` by ${owner}, last heartbeat ${formatRelative(heartbeatAt ?? now, now)}` : '';
  const part = row.progress === null ? 'unknown' : formatPercent(row.progress, 1);
  const said = describeLeft(row);
  const left =
    said === null
      ? ''
      : leftRequests! > 0
        ? `, ${formatCounted(leftRequests!, 'request')} left of ${formatCount(row.plannedRequests)}`
        : `; requests left: ${said}`;
  const finish = formatFinish(row, now);
  const changed =
    row.finishChange === null ? null : `${formatRelative(row.finishChangedAt!, now)}: ${row.finishChange}`;
  return [
    ['state', `${row.state}${by}`],
    ['priority', String(row.priority)],
    ['requested', `${formatRelative(row.requestedAt, now)}${requestedBy === null ? '' : ` by ${requestedBy}`}`],
    ['progress', `${part}${left}`],
    ['spent', `${formatCounted(row.spent, 'request')}, ${formatCounted(row.stored, 'row')} stored`],
    ...(finish === null ? [] : [['done', finish] satisfies [string, string]]),
    ...(changed === null || row.finishAt === null ? [] : [['', `changed ${changed}`] satisfies [string, string]]),
    ...(chunks === null
      ? []
      : [
          [
            'chunks',
            `${formatCount(chunks.inProgress)} in progress, ${formatCount(chunks.queued)} queued, ${formatCount(chunks.retrying)} waiting for a retry`,
          ] satisfies [string, string],
        ]),
  ];
}

function printWaits(out: Output, { chunks }: BackfillDetails, now: Instant): void {
  if (chunks === null || chunks.waits.length === 0) return;
  out.write(
    `\nChunks that wait for a retry${chunks.retrying > chunks.waits.length ? ` (${chunks.waits.length} of ${formatCount(chunks.retrying)})` : ''}\n`,
  );
  printTable(out, chunks.waits, [
    whole('coin', (wait) => wait.coinId),
    whole('span', (wait) => formatSpan({ from: Date.parse(wait.from), to: Date.parse(wait.to) })),
    whole('until', (wait) => formatMoment(Date.parse(wait.until), now)),
    number('failed', (wait) => wait.attempts),
    text('why', (wait) => waitingFor(wait.reason)),
  ]);
}

function printFailures(out: Output, { failures }: BackfillDetails, now: Instant): void {
  if (failures.length === 0) return;
  out.write('\nLast failed requests\n');
  printTable(out, failures, [
    whole('when', ({ sentAt }) => formatRelative(sentAt, now)),
    whole('coin', ({ coinId }) => coinId),
    whole('span', (one) =>
      one.from === null ? null : `${formatDay(one.from)} … ${one.to === null ? '' : formatDay(one.to)}`,
    ),
    number('attempt', ({ attempt }) => attempt),
    number('status', ({ status }) => (status === null ? null : String(status))),
    whole('outcome', ({ outcome }) => outcome),
    text('answer', ({ message }) => message),
  ]);
}
