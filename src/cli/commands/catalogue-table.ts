/** The table of how old the catalogue is, one row per kind: part of `status`. */
import type { Budget } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import { formatDuration } from '../../core/format.ts';
import { CATALOGUE_PLAN } from '../../ingest/catalogue/catalogue-plan.ts';
import { ageOfCatalogue } from '../../ingest/schedule/schedule-plan.ts';
import type { CatalogueAge, CatalogueKind } from '../../store/catalogue/catalogue-item.ts';
import { number, printTable, whole } from '../output/table.ts';
import type { Output } from '../shell/io.ts';

/** How old the answers of each kind become with the present schedules; null: that kind is never requested. */
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

/** Prints nothing until the first answer about the catalogue has been stored. */
export function printCatalogue(
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
