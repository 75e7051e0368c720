/** `chandler status`: the warehouse at a glance. */
import type { Command } from 'commander';
import { readGivesOnlyLastDay } from '../../background/actions/track-rules.ts';
import { readLakeRuns } from '../../background/lake/lake-state.ts';
import { formatMoment } from '../../background/operator/wait-reasons.ts';
import { type Budget, readBudget } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import {
  formatCount,
  formatCounted,
  formatDay,
  formatDuration,
  formatPercent,
  formatRelative,
  formatSeries,
  toIso,
  withIso,
} from '../../core/format.ts';
import { CATALOGUE_PLAN } from '../../ingest/catalogue/catalogue-plan.ts';
import { type StandingRefusal, standingRefusal } from '../../ingest/request/account.ts';
import { ageOfCatalogue } from '../../ingest/schedule/schedule-plan.ts';
import type { CatalogueAge, CatalogueKind } from '../../store/catalogue/catalogue-item.ts';
import type { SeriesStatus } from '../../views/operations/series-counts.ts';
import { MANY_SERIES } from '../../views/operations/series-filter.ts';
import { readStatus, type Status } from '../../views/operations/status.ts';
import { formatSpan } from '../backfill/backfill-columns.ts';
import { describeRefusal } from '../output/key-refusal.ts';
import { lakeAsJson, printLake } from '../output/lake-runs.ts';
import { nowAsJson, printNow, readNow } from '../output/now.ts';
import { number, printTable, text, whole } from '../output/table.ts';
import { printTiers } from '../output/tier-table.ts';
import type { CommandContext } from '../shell/context.ts';
import type { Output } from '../shell/io.ts';
import { isGone } from '../shell/owner.ts';

export function statusCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('status')
    .description(
      'show what happens now or why nothing does, what broke first, what is wanted and stored, and the last answers of the upstream',
    )
    .option(
      '--count',
      'count all series now, which takes some seconds for millions of series (default: show the last count of a service)',
    );
  context.answer(command, async (app) => {
    const now = app.clock.now();
    const { count = false } = command.opts<{ count?: boolean }>();
    const status = withKnownSilence(await readStatus(app.database.sql, now, count));
    const budget = await readBudget(app);
    const achievable = achievableAges(budget, status.catalogue);
    const givesOnlyLastDay = await readGivesOnlyLastDay(app, budget.plan);
    const key = { id: budget.accountId, sentAs: app.config.authScheme };
    const refusal = await standingRefusal(app.database.sql, key);
    const present = await readNow(app, budget, { now, refusal });
    const lake = await readLakeRuns(app.database.sql, app.config);
    return {
      json: () => ({ ...asJson(status, achievable, refusal), now: nowAsJson(present), lake: lakeAsJson(lake) }),
      text: (out) => {
        if (refusal !== null) out.write(`${describeRefusal(refusal, now)}\n\n`);
        printNow(out, present, now);
        printStatus(out, status, now, { achievable, givesOnlyLastDay, isLocked: present.isLocked });
        printLake(out, lake, now);
      },
    };
  });
}

/** A process of this machine that has ended counts as silent at once, not only after its lease has expired. */
function withKnownSilence(status: Status): Status {
  const backfills = status.backfills.map((b) => ({ ...b, isSilent: b.isSilent || isGone(b.owner) }));
  return { ...status, backfills };
}

/** Facts about the present plan and budget. */
type Known = {
  readonly achievable?: AchievableAges;
  readonly givesOnlyLastDay?: boolean;
  /** Whether another session holds a lock that Chandler needs. */
  readonly isLocked?: boolean;
};

/** `chandler demo` shows it as well. */
export function printStatus(
  out: Output,
  status: Status,
  now: Instant,
  { achievable = new Map(), givesOnlyLastDay = false, isLocked = false }: Known = {},
): void {
  if (status.countedAt !== null) {
    const ago = formatRelative(status.countedAt, now);
    out.write(
      `A service counted series, ages, catalogue and requests ${ago}; with this many series it counts only from time to time.\n\n`,
    );
  }
  if (status.series === null) {
    out.write(
      `There are more than ${formatCount(MANY_SERIES)} series, and no service has counted them lately. To count them now: chandler status --count\n`,
    );
  } else if (status.series.length === 0) {
    out.write('There are no series yet. Begin with: chandler backfill btc-bitcoin --start -30d\n');
  } else printSeries(out, status.series);
  if (status.tiers !== null && status.tiers.length > 0) {
    out.write('\nTracked\n');
    printTiers(out, status.tiers, givesOnlyLastDay);
  }
  printCatalogue(out, status.catalogue, { now, achievable });
  printBackfills(out, status, now);
  printSilent(out, status, { now, isLocked });
  printFetches(out, status, now);
  const remarks = [
    status.revisions > 0 && `the upstream changed ${formatCounted(status.revisions, 'final value')} (market.revision)`,
    status.quarantined > 0 && `${formatCounted(status.quarantined, 'invalid row')} quarantined (market.quarantine)`,
  ].filter(Boolean);
  if (remarks.length > 0) out.write(`\nNote: ${remarks.join('; ')}.\n`);
}

function printSeries(out: Output, series: readonly SeriesStatus[]): void {
  printTable(out, series, [
    text('series', formatSeries),
    number('coins', (s) => s.series),
    number('wanted', (s) => s.slotsWanted),
    number('covered', (s) => s.slotsCovered),
    number('missing', (s) => s.slotsMissing),
    number('(too recent)', (s) => s.slotsUnsettled),
    number('done', (s) => formatPercent(s.slotsCovered, s.slotsWanted - s.slotsUnsettled)),
    number('rows', (s) => s.candles),
    whole('final until', (s) => (s.finalUntil === null ? 'nothing yet' : formatDay(s.finalUntil))),
  ]);
}

function printBackfills(out: Output, status: Status, now: Instant): void {
  const backfills = status.backfills.filter((b) => !b.isSilent);
  if (backfills.length === 0) return;
  out.write('\nRunning backfills\n');
  printTable(out, backfills, [
    text('id', (b) => String(b.id)),
    text('series', formatSeries),
    text('span', formatSpan),
    text('requests', (b) => `${formatCount(b.requests)} of ${formatCount(b.plannedRequests)}`),
    text('started', (b) => formatRelative(b.requestedAt, now)),
    text('last heartbeat', (b) => formatRelative(b.heartbeatAt, now)),
    text('process', (b) => b.owner),
  ]);
}

/** Backfills whose state is running, but whose process no longer reports. */
function printSilent(
  out: Output,
  status: Status,
  { now, isLocked }: { readonly now: Instant; readonly isLocked: boolean },
): void {
  for (const b of status.backfills.filter(({ isSilent }) => isSilent)) {
    const since = formatMoment(b.heartbeatAt, now);
    const next = b.isDetached ? 'A running service takes it over' : 'Run the same command again';
    const why =
      isLocked && !isGone(b.owner)
        ? `Its process ${b.owner} may wait for the lock.`
        : `Its process ${b.owner} was killed, or cannot reach the database. ${next}; only what is missing is requested.`;
    out.write(`\nBackfill ${b.id} (${formatSeries(b)}, ${formatSpan(b)}): no heartbeat since ${since}.\n${why}\n`);
  }
}

function printFetches(out: Output, { fetches }: Status, now: Instant): void {
  if (fetches.length === 0) return;
  out.write('\nRequests of the last 24 hours\n');
  printTable(out, fetches, [
    text('outcome', (f) => f.outcome),
    number('requests', (f) => f.requests),
    number('rows', (f) => f.rows),
    text('last', (f) => formatRelative(f.lastAt, now)),
  ]);
}

/** How old the answers of each kind become with the present schedules. Null when Chandler never requests that kind. */
type AchievableAges = ReadonlyMap<CatalogueKind, number | null>;

function achievableAges({ schedules }: Pick<Budget, 'schedules'>, ages: readonly CatalogueAge[]): AchievableAges {
  return new Map(
    ages.map((age) => {
      const schedule = schedules.find(({ name }) => name === age.kind);
      return [age.kind, schedule === undefined ? null : ageOfCatalogue(schedule, age)];
    }),
  );
}

/** Prints nothing until the first answer about the catalogue has been stored. */
function printCatalogue(
  out: Output,
  ages: readonly CatalogueAge[],
  { now, achievable }: { readonly now: Instant; readonly achievable: AchievableAges },
): void {
  if (ages.every(({ answered }) => answered === 0)) return;
  const since = (at: Instant | null) => (at === null ? null : formatDuration(Math.max(0, now - at)));
  const achievableAge = (kind: CatalogueKind) => {
    const age = achievable.get(kind) ?? null;
    return age === null ? 'never' : formatDuration(age);
  };
  const wanted = ages.filter(({ items }) => items > 0);
  out.write('\nCatalogue\n');
  printTable(out, wanted, [
    whole('kind', ({ kind }) => kind),
    number('wanted', ({ items }) => items),
    number('answered', ({ answered }) => answered),
    number('unknown', ({ unknown }) => unknown),
    number('target age', ({ kind }) => formatDuration(CATALOGUE_PLAN[kind].ageMs)),
    number('achievable', ({ kind }) => achievableAge(kind)),
    number('oldest now', ({ oldestAt }) => since(oldestAt)),
    number('newest now', ({ newestAt }) => since(newestAt)),
  ]);
}

function asJson(status: Status, achievable: AchievableAges, refusal: StandingRefusal | null) {
  return {
    ...withIso(status, 'countedAt'),
    keyRefusal:
      refusal === null
        ? null
        : {
            message: refusal.message,
            since: toIso(refusal.since),
            lastTriedAt: toIso(refusal.at),
            retryAt: toIso(refusal.retryAt),
          },
    series: status.series?.map((s) => withIso(s, 'finalUntil', 'finalUntilOldest')) ?? null,
    backfills: status.backfills.map((b) => withIso(b, 'requestedAt', 'from', 'to', 'heartbeatAt')),
    catalogue: status.catalogue.map((c) => ({
      ...withIso(c, 'oldestAt', 'newestAt'),
      targetAgeMs: CATALOGUE_PLAN[c.kind].ageMs,
      achievableAgeMs: achievable.get(c.kind) ?? null,
    })),
    fetches: status.fetches.map((f) => withIso(f, 'lastAt')),
  };
}
