/** The order of test files: those that take minutes begin first. Otherwise the last of them would run alone while the other cores wait. */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Longest first. Only the order depends on it: if a file is missing or has become faster, the run takes a little longer at most. */
const LONGEST = [
  'system/quarter-redis.deep',
  'system/seeds-1.deep',
  'system/year.deep',
  'system/seeds-2.deep',
  'system/million-chunks.deep',
  'system/seeds-4.deep',
  'views/operations/tampering-seeds.deep',
  'system/seeds-3.deep',
  'system/calm-days.deep',
  'dashboard/browser.deep',
  'system/quarter-postgres.deep',
  'system/service-seeds-redis.deep',
  'system/seeds-faults.deep',
  'system/lies-anywhere.deep',
  'system/backfill-finish.deep',
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const found = LONGEST.findIndex((name) => moduleId.includes(`/test/${name}.`));
      return found < 0 ? LONGEST.length : found;
    };
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}
