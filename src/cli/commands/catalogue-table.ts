/** How old the catalogue is, a row for each kind: part of `status`. */
import type { Budget } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import { CATALOGUE_PLAN } from '../../ingest/catalogue/catalogue-plan.ts';
import { ageOfCatalogue } from '../../ingest/schedule/schedule-plan.ts';
import type { CatalogueAge, CatalogueKind } from '../../store/catalogue/catalogue-item.ts';
import { formatCount, formatDuration } from '../output/format.ts';
import { formatTable } from '../output/table.ts';
import type { Output } from '../shell/io.ts';

/** How old answers become with the schedules there are; null: they are never asked for. */
export type AchievableAges = ReadonlyMap<CatalogueKind, number | null>;

export function achievableAges(
  { schedules }: Pick<Budget, 'schedules'>,
  ages: readonly CatalogueAge[],
): AchievableAges {
  return new Map(
    ages.map((age) => {
      const schedule = schedules.find(({ name }) => name === age.kind);
      return [age.kind, schedule === undefined ? null : ageOfCatalogue(schedule, age)];
    }),
  );
}

/** Nothing, as long as nothing of it was ever answered. */
export function printCatalogue(
  out: Output,
  ages: readonly CatalogueAge[],
  { now, achievable }: { readonly now: Instant; readonly achievable: AchievableAges },
): void {
  if (ages.every(({ answered }) => answered === 0)) return;
  const right = { align: 'right' as const };
  const columns = [
    { title: 'kind', isWhole: true },
    ...['wanted', 'answered', 'unknown', 'target age', 'achievable', 'oldest now', 'newest now'].map((title) => ({
      title,
      ...right,
    })),
  ];
  const since = (at: Instant | null) => (at === null ? '–' : formatDuration(Math.max(0, now - at)));
  const rows = ages
    .filter(({ items }) => items > 0)
    .map(({ kind, items, answered, unknown, oldestAt, newestAt }) => {
      const age = achievable.get(kind) ?? null;
      return [
        kind,
        formatCount(items),
        formatCount(answered),
        formatCount(unknown),
        formatDuration(CATALOGUE_PLAN[kind].ageMs),
        age === null ? 'never' : formatDuration(age),
        since(oldestAt),
        since(newestAt),
      ];
    });
  out.write('\nCatalogue\n');
  out.write(formatTable(columns, rows, out.columns()));
}
