/** How fresh tracked series are kept, a row for each tier: part of `status` and of `track`. */
import type { TierStatus } from '../../views/operations/tiers.ts';
import type { Output } from '../shell/io.ts';
import { formatCount, formatCounted, formatDuration } from './format.ts';
import { formatTable } from './table.ts';

export function printTiers(out: Output, tiers: readonly TierStatus[]): void {
  const right = { align: 'right' as const };
  const columns = [
    { title: 'tier', isWhole: true },
    { title: 'priority', ...right },
    { title: 'series', ...right },
    { title: 'target age', ...right },
    { title: 'achievable', ...right },
    { title: 'median now', ...right },
    { title: 'oldest now', ...right },
    { title: '' },
  ];
  const rows = tiers.map((t) => [
    `${t.tier} ${t.interval}`,
    String(t.priority),
    formatCount(t.series),
    formatDuration(t.targetAgeMs),
    formatAchievable(t),
    t.medianAgeMs === null ? '–' : formatDuration(t.medianAgeMs),
    t.oldestAgeMs === null ? '–' : formatDuration(t.oldestAgeMs),
    remarksOn(t).join(', '),
  ]);
  out.write(formatTable(columns, rows, out.columns()));
  if (tiers.some((t) => !t.keepsUp && t.achievableAgeMs !== null))
    out.write(
      'Where candles are left out, the newest are kept and the others are gaps: chandler backfill brings them.\n',
    );
}

function formatAchievable({ achievableAgeMs, isPlanned }: TierStatus): string {
  if (achievableAgeMs !== null) return formatDuration(achievableAgeMs);
  return isPlanned ? 'never' : 'not planned';
}

function remarksOn({ unseen, ending, keepsUp, achievableAgeMs, isPlanned }: TierStatus): string[] {
  const remarks = [
    isPlanned && achievableAgeMs === null && 'not with this plan and budget',
    achievableAgeMs !== null && !keepsUp && 'candles are left out',
    unseen > 0 && `${formatCounted(unseen, 'series', 'series')} not answered yet`,
    ending > 0 && `${formatCounted(ending, 'series', 'series')} ending`,
  ];
  return remarks.filter((remark) => remark !== false);
}
