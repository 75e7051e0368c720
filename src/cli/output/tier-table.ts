/** The table of how fresh tracked series are, one row per tier: part of `status` and of `track`. */
import { formatCounted, formatDuration } from '../../core/format.ts';
import type { TierStatus } from '../../views/operations/tiers.ts';
import type { Output } from '../shell/io.ts';
import { number, printTable, text, whole } from './table.ts';

/** `givesOnlyLastDay`: the plan gives only the last full day of daily candles. */
export function printTiers(out: Output, tiers: readonly TierStatus[], givesOnlyLastDay = false): void {
  const age = (ms: number | null) => (ms === null ? null : formatDuration(ms));
  printTable(out, tiers, [
    whole('tier', (t) => `${t.tier} ${t.interval}`),
    number('priority', (t) => String(t.priority)),
    number('series', (t) => t.series),
    number('target age', (t) => formatDuration(t.targetAgeMs)),
    number('achievable', formatAchievable),
    number('median now', (t) => age(t.medianAgeMs)),
    number('oldest now', (t) => age(t.oldestAgeMs)),
    text('', (t) => remarksOn(t).join(', ')),
  ]);
  const isLost = ({ interval }: TierStatus) => givesOnlyLastDay && interval === '24h';
  const skipping = tiers.filter(skipsCandles);
  if (skipping.some((tier) => !isLost(tier))) {
    const which = skipping.some(isLost) ? 'candles other than daily ones' : 'candles';
    out.write(
      `Where ${which} are skipped, Chandler stores the newest ones; chandler backfill fills the gaps between them.\n`,
    );
  }
  if (skipping.some(isLost)) {
    out.write(
      'Daily candles that are skipped cannot be fetched later under this plan, which gives only the last full day. To have every day, track fewer coins with a target age of 1d, or choose a larger plan.\n',
    );
  }
}

/** Whether the budget is too small to fetch every candle of the tier before the next ones are due. */
function skipsCandles({ achievableAgeMs, keepsUp }: TierStatus): boolean {
  return achievableAgeMs !== null && !keepsUp;
}

function formatAchievable({ achievableAgeMs, isPlanned }: TierStatus): string {
  if (achievableAgeMs !== null) return formatDuration(achievableAgeMs);
  return isPlanned ? 'never' : 'not planned';
}

function remarksOn(tier: TierStatus): string[] {
  const { unseen, ending, achievableAgeMs, isPlanned } = tier;
  const remarks = [
    isPlanned && achievableAgeMs === null && 'not with this plan and budget',
    skipsCandles(tier) && 'candles are skipped',
    unseen > 0 && `${formatCounted(unseen, 'series')} not refreshed yet`,
    ending > 0 && `${formatCounted(ending, 'series')} tracked only until final`,
  ];
  return remarks.filter((remark) => remark !== false);
}
