/** `chandler status`: the warehouse at a glance. */
import type { Command } from 'commander';
import { readBudget } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import { CATALOGUE_PLAN } from '../../ingest/catalogue/catalogue-plan.ts';
import { readStatus, type Status } from '../../views/operations/status.ts';
import {
  formatCount,
  formatCounted,
  formatDay,
  formatInstant,
  formatPercent,
  formatRelative,
  formatSeries,
} from '../output/format.ts';
import { printJson, toIso } from '../output/json.ts';
import { formatTable } from '../output/table.ts';
import { printTiers } from '../output/tier-table.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';
import { isGone } from '../shell/owner.ts';
import { type AchievableAges, achievableAges, printCatalogue } from './catalogue-table.ts';

export function statusCommand(program: Command, context: CommandContext): void {
  program
    .command('status')
    .description('show what is wanted, what is there, what is under way and what upstream answered lately')
    .option('--json', 'print JSON')
    .action(
      context.action(async (options: { json?: boolean }) =>
        context.withApp({ schema: 'require' }, async (app) => {
          const now = context.clock.now();
          const status = withTheDead(await readStatus(app.database.sql, now));
          const achievable = achievableAges(await readBudget(app), status.catalogue);
          if (options.json) printJson(context.io.out, asJson(status, achievable));
          else printStatus(context.io.out, status, now, achievable);
          return EXIT.done;
        }),
      ),
    );
}

/** A process of this machine that is gone is known to be silent before its silence has lasted. */
function withTheDead(status: Status): Status {
  const backfills = status.backfills.map((b) => ({ ...b, isSilent: b.isSilent || isGone(b.owner) }));
  return { ...status, backfills };
}

/** Also part of what `chandler demo` shows. */
export function printStatus(out: Output, status: Status, now: Instant, achievable: AchievableAges = new Map()): void {
  if (status.series.length === 0) {
    out.write('Nothing is wanted yet. Begin with: chandler backfill btc-bitcoin --start -30d\n');
  } else printSeries(out, status);
  if (status.tiers.length > 0) {
    out.write('\nTracked\n');
    printTiers(out, status.tiers);
  }
  printCatalogue(out, status.catalogue, { now, achievable });
  const alive = status.backfills.filter((b) => !b.isSilent);
  if (alive.length > 0) printBackfills(out, alive, now);
  printSilent(
    out,
    status.backfills.filter((b) => b.isSilent),
    now,
  );
  if (status.fetches.length > 0) printFetches(out, status, now);
  const remarks = [
    status.revisions > 0 &&
      `${formatCounted(status.revisions, 'candle')} changed upstream after being final (market.revision)`,
    status.setAside > 0 && `${formatCounted(status.setAside, 'impossible row')} set aside (market.quarantine)`,
  ].filter(Boolean);
  if (remarks.length > 0) out.write(`\n${remarks.join('; ')}.\n`);
}

function printSeries(out: Output, { series }: Status): void {
  const rows = series.map((s) => [
    formatSeries(s),
    formatCount(s.series),
    formatCount(s.slotsWanted),
    formatCount(s.slotsCovered),
    formatCount(s.slotsMissing),
    formatCount(s.slotsUnsettled),
    formatPercent(s.slotsCovered, s.slotsWanted - s.slotsUnsettled),
    formatCount(s.candles),
    s.finalUntil === null ? 'nothing yet' : formatDay(s.finalUntil),
  ]);
  const numbers = ['coins', 'wanted', 'covered', 'missing', '(too young)', 'done', 'candles'];
  const columns = [{ title: 'series' }, ...numbers.map((title) => ({ title, align: 'right' as const }))];
  out.write(formatTable([...columns, { title: 'final until', isWhole: true }], rows, out.columns()));
}

function printBackfills(out: Output, backfills: Status['backfills'], now: Instant): void {
  out.write('\nRunning backfills\n');
  const rows = backfills.map((b) => [
    String(b.id),
    ...describeBackfill(b),
    `${formatCount(b.requests)} of ${formatCount(b.plannedRequests)}`,
    formatRelative(b.requestedAt, now),
    formatRelative(b.heartbeatAt, now),
    b.owner,
  ]);
  const columns = ['id', 'series', 'span', 'requests', 'begun', 'last sign', 'process'];
  out.write(
    formatTable(
      columns.map((title) => ({ title })),
      rows,
      out.columns(),
    ),
  );
}

/** Runs that call themselves running, of which nothing is heard. */
function printSilent(out: Output, backfills: Status['backfills'], now: Instant): void {
  for (const b of backfills) {
    const [series, span] = describeBackfill(b);
    out.write(
      `\nBackfill ${b.id} (${series}, ${span}): no sign of life since ${formatInstant(b.heartbeatAt)} (${formatRelative(b.heartbeatAt, now)}).\n` +
        `Its process ${b.owner} was killed or cannot reach the database. ${b.isDetached ? 'A running service takes it over' : 'Give the same command again'}: only what is missing is asked for.\n`,
    );
  }
}

function describeBackfill(b: Status['backfills'][number]): [series: string, span: string] {
  const [from, to] = [b.from, b.to].map((at) => (at === null ? 'ever' : formatDay(at)));
  return [formatSeries(b), `${from} … ${to}`];
}

function printFetches(out: Output, { fetches }: Status, now: Instant): void {
  out.write('\nRequests of the last 24 hours\n');
  const rows = fetches.map((f) => [
    f.outcome,
    formatCount(f.requests),
    formatCount(f.rows),
    formatRelative(f.lastAt, now),
  ]);
  const columns = [
    { title: 'outcome' },
    { title: 'requests', align: 'right' as const },
    { title: 'rows', align: 'right' as const },
  ];
  out.write(formatTable([...columns, { title: 'last' }], rows, out.columns()));
}

function asJson(status: Status, achievable: AchievableAges): unknown {
  return {
    ...status,
    series: status.series.map((s) => ({
      ...s,
      finalUntil: toIso(s.finalUntil),
      finalUntilOldest: toIso(s.finalUntilOldest),
    })),
    backfills: status.backfills.map((b) => ({
      ...b,
      requestedAt: toIso(b.requestedAt),
      from: toIso(b.from),
      to: toIso(b.to),
      heartbeatAt: toIso(b.heartbeatAt),
    })),
    catalogue: status.catalogue.map((c) => ({
      ...c,
      targetAgeMs: CATALOGUE_PLAN[c.kind].ageMs,
      achievableAgeMs: achievable.get(c.kind) ?? null,
      oldestAt: toIso(c.oldestAt),
      newestAt: toIso(c.newestAt),
    })),
    fetches: status.fetches.map((f) => ({ ...f, lastAt: toIso(f.lastAt) })),
  };
}
