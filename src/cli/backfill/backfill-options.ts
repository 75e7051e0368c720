/** The options of `chandler backfill`. */
import { type Command, Option } from 'commander';
import { formatCount } from '../../core/format.ts';
import type { Interval } from '../../core/interval.ts';
import { integer, parsePriority } from '../input/options.ts';
import { type TargetOptions, targetOptions } from '../input/series-options.ts';
import { parseDuration } from '../input/time.ts';
import { UsageError } from '../shell/exit.ts';

export type BackfillCommandOptions = TargetOptions & {
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly detach?: boolean;
  readonly priority?: number;
  readonly maxWait: number;
  readonly concurrency: number;
  readonly json?: boolean;
  /** Leaves out the table of the other plans. */
  readonly brief?: boolean;
};

/** Above this number of requests, the command asks for confirmation on a terminal. */
export const CONFIRM_ABOVE = 1_000;

export function backfillOptions(command: Command): Command {
  return targetOptions(command)
    .option('--dry-run', 'show the plan and stop')
    .option('--yes', `do not ask for confirmation above ${formatCount(CONFIRM_ABOVE)} requests`)
    .option('--detach', 'record the backfill for chandler service to run, and exit')
    .option('--priority <n>', 'with --detach: the highest runs first (default: 0)', parsePriority)
    .addOption(
      new Option(
        '--max-wait <time>',
        'stop (exit code 75) instead of waiting longer than this for the quota, the database or the queue',
      )
        .argParser(parseDuration)
        .default(5 * 60_000, '5m'),
    )
    .option('--concurrency <n>', 'concurrent requests', integer(1, 32), 8)
    .option('--json', 'print JSON');
}

/** @throws UsageError for an option that needs --detach, or that contradicts it */
export function checkDetached({ detach, priority }: BackfillCommandOptions, isGiven: (name: string) => boolean): void {
  if (priority !== undefined && !detach) {
    throw new UsageError('--priority needs --detach: only the service runs backfills by priority.');
  }
  if (detach && isGiven('maxWait')) {
    throw new UsageError('--max-wait cannot be combined with --detach: the service waits for as long as it takes.');
  }
  if (detach && isGiven('concurrency')) {
    throw new UsageError('--concurrency cannot be combined with --detach: give it to chandler service instead.');
  }
}

/** The target of one interval as the user typed it, for the record. */
export function specOf(
  coins: readonly string[],
  { top, all, everTop, inactive, start, end, quote }: BackfillCommandOptions,
  interval: Interval,
) {
  return { coins, top, all, everTop, inactive, start, end, interval, quote };
}
