/** The table of how fresh tracked series are, one row per tier: part of `status` and of `track`. */
import { formatCounted, formatDuration } from '../../core/format.ts';
import type { TierStatus } from '../../views/operations/tiers.ts';
import type { Output } from '../shell/io.ts';
import { number, printTable, text, whole } from './table.ts';

export function printTiers(out: Output, tiers: readonly TierStatus[]): void {
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
  if (tiers.some(skipsCandles)) {
    out.write(
      'Where candles are skipped, Chandler stores the newest ones; chandler backfill fills the gaps between them.\n',
    );
  }
}

/** The budget is too small to fetch every candle of the tier before the next ones are due. */
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
