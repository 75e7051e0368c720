/** What `chandler track` says: the rules, what they come to, what it costs and how fresh it can be. */
import { PLANS, type PlanName } from '../../contract/plan/plans.ts';
import type { Interval } from '../../core/interval.ts';
import type { Tier } from '../../core/tier.ts';
import type { PlannedTier, TrackedPlan } from '../../ingest/tracking/freshness.ts';
import type { AppliedTracks } from '../../store/tracking/apply-track-rules.ts';
import type { SavedRule } from '../../store/tracking/track-rule.ts';
import type { TierStatus } from '../../views/operations/tiers.ts';
import { formatCount, formatCounted, formatDay, formatDuration, formatSeries } from '../output/format.ts';
import { printJson, toIso } from '../output/json.ts';
import { formatTable } from '../output/table.ts';
import { printTiers } from '../output/tier-table.ts';
import type { Output } from '../shell/io.ts';

export type TrackReport = {
  readonly applied: AppliedTracks;
  readonly planName: PlanName;
  readonly plan: TrackedPlan;
  /** What freshness may spend a day; null = any number. */
  readonly perDay: number | null;
  readonly tiers: readonly TierStatus[];
};

type Counts = { readonly added?: number; readonly removed?: number; readonly stillTracked?: number };

export function trackAsJson(out: Output, { plan, perDay, applied, tiers, ...counts }: TrackReport & Counts): void {
  printJson(out, {
    ...counts,
    applied,
    requestsPerDay: { wanted: plan.wantedPerDay, planned: plan.requestsPerDay, available: perDay },
    tiers,
  });
}

export function printAdded(out: Output, rules: number, report: TrackReport): void {
  const { applied, planName, plan, perDay, tiers } = report;
  out.write(
    `${formatCounted(rules, 'rule')} kept; ${formatCounted(applied.series, 'series', 'series')} tracked, ${formatCount(applied.added)} of them new.\n`,
  );
  if (tiers.length > 0) {
    out.write('\n');
    printTiers(out, tiers);
  }
  printCost(out, plan, perDay);
  const intervals = (isMeant: (tier: PlannedTier) => boolean) => [
    ...new Set(plan.tiers.filter(isMeant).map(({ interval }) => interval)),
  ];
  const refused = intervals(({ isRefused }) => isRefused);
  if (refused.length > 0) out.write(`Upstream does not give this plan candles of ${refused.join(', ')}.\n`);
  const doubtful = intervals((tier) => !tier.isRefused && !PLANS[planName].intervals.includes(tier.interval));
  if (doubtful.length > 0) {
    out.write(
      `By its documents plan ${planName} includes no candles of ${doubtful.join(', ')}: one request will try, and what is refused is in chandler gaps.\n`,
    );
  }
}

function printCost(out: Output, { wantedPerDay, requestsPerDay }: TrackedPlan, perDay: number | null): void {
  if (wantedPerDay === 0) return;
  const wanted = `Keeping every target age costs ${formatCounted(Math.ceil(wantedPerDay), 'request')} a day`;
  if (perDay === null || wantedPerDay <= perDay) {
    const of = perDay === null ? '' : `; ${formatCount(Math.floor(perDay))} are there for it`;
    out.write(`\n${wanted}${of}.\n`);
    return;
  }
  out.write(
    `\n${wanted}, and ${formatCount(Math.floor(perDay))} are there for it: with ${formatCount(Math.ceil(requestsPerDay))} a day the ages become those called achievable.\n`,
  );
}

export function printRemoved(out: Output, rules: number, still: number, { applied, tiers }: TrackReport): void {
  out.write(
    `${formatCounted(rules, 'rule')} removed; ${formatCounted(applied.series, 'series', 'series')} still tracked.\n`,
  );
  if (applied.ended > 0) {
    out.write(
      `${formatCounted(applied.ended, 'series', 'series')} ${applied.ended === 1 ? 'is' : 'are'} tracked no longer: nothing stored is deleted. Where there are candles, the newest ones are asked for once or twice more, until they are final.\n`,
    );
  }
  if (still > 0)
    out.write(
      `${formatCounted(still, 'series', 'series')} of the coins named stay tracked by other rules (chandler track list).\n`,
    );
  if (tiers.length === 0) return;
  out.write('\n');
  printTiers(out, tiers);
}

export function printRules(
  out: Output,
  rules: readonly SavedRule[],
  tiers: readonly TierStatus[],
  isJson: boolean,
): void {
  if (isJson) {
    printJson(out, {
      rules: rules.map((r) => ({ ...r, since: toIso(r.since), createdAt: toIso(r.createdAt) })),
      tiers,
    });
    return;
  }
  if (rules.length === 0) {
    out.write('Nothing is tracked yet. Begin with: chandler track add --top 100\n');
    return;
  }
  const rows = gathered(rules).map((g) => [
    describeCoins(g),
    formatSeries(g.rule),
    formatDay(g.rule.since),
    String(g.rule.priority),
    formatDuration(g.rule.targetAgeMs),
  ]);
  const columns = [
    { title: 'coins' },
    { title: 'series', isWhole: true },
    { title: 'since', isWhole: true },
    { title: 'priority', align: 'right' as const },
    { title: 'target age', align: 'right' as const },
  ];
  out.write(formatTable(columns, rows, out.columns()));
  if (tiers.length === 0) return;
  out.write('\n');
  printTiers(out, tiers);
}

type Gathered = {
  readonly rule: SavedRule & { readonly tier: Tier; readonly interval: Interval };
  readonly coinIds: string[];
};

/** Named coins on the same terms as one row. */
function gathered(rules: readonly SavedRule[]): Gathered[] {
  const rows = new Map<string, Gathered>();
  for (const rule of rules) {
    const { tier, top, interval, quote, since, priority, targetAgeMs, coinId } = rule;
    const key = [tier, top, interval, quote, since, priority, targetAgeMs].join();
    const row = rows.get(key) ?? { rule, coinIds: [] };
    if (coinId !== null) row.coinIds.push(coinId);
    rows.set(key, row);
  }
  return [...rows.values()];
}

const NAMED = 5;

function describeCoins({ rule, coinIds }: Gathered): string {
  if (rule.tier === 'all') return 'all';
  if (rule.tier === 'top') return `top ${formatCount(rule.top!)}`;
  const shown = coinIds.slice(0, NAMED).join(' ');
  return coinIds.length > NAMED ? `${shown} and ${formatCount(coinIds.length - NAMED)} more` : shown;
}
