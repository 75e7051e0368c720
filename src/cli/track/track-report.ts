/** The output of `chandler track`: the rules, the series they track, what that costs, and how fresh the service can keep them. */
import type { RemovedRules, TrackReport } from '../../background/actions/track-rules.ts';
import { documentedDepth, PLANS } from '../../contract/plan/plans.ts';
import { formatCount, formatCounted, formatDay, formatDuration, formatSeries, withIso } from '../../core/format.ts';
import { describeInterval, type Interval } from '../../core/interval.ts';
import type { Tier } from '../../core/tier.ts';
import type { PlannedTier, TrackedPlan } from '../../ingest/tracking/freshness.ts';
import type { SavedRule } from '../../store/tracking/track-rule.ts';
import type { TierStatus } from '../../views/operations/tiers.ts';
import { number, printTable, text, whole } from '../output/table.ts';
import { printTiers } from '../output/tier-table.ts';
import type { Output } from '../shell/io.ts';

export function trackAsJson({ plan, perDay, applied, tiers }: TrackReport) {
  const requestsPerDay = { wanted: plan.wantedPerDay, planned: plan.requestsPerDay, available: perDay };
  return { applied, requestsPerDay, tiers };
}

export function printAdded(out: Output, rules: number, report: TrackReport): void {
  const { applied, planName, plan, perDay, tiers, givesOnlyLastDay } = report;
  out.write(
    `${formatCounted(rules, 'rule')} saved; ${formatCounted(applied.series, 'series')} tracked, ${formatCount(applied.added)} of them new.\n`,
  );
  if (tiers.length > 0) {
    out.write('\n');
    printTiers(out, tiers, givesOnlyLastDay);
  }
  printCost(out, plan, perDay);
  const intervals = (isMeant: (tier: PlannedTier) => boolean) => [
    ...new Set(plan.tiers.filter(isMeant).map(({ interval }) => interval)),
  ];
  const refused = intervals(({ isRefused }) => isRefused);
  if (refused.length > 0)
    out.write(`The upstream refuses ${refused.map(describeInterval).join(', ')} under this plan.\n`);
  const neverFinal = intervals((tier) => tier.isNeverFinal && !tier.isRefused);
  if (neverFinal.length > 0) {
    out.write(
      `None of the ${neverFinal.map(describeInterval).join(', ')} becomes final: plan ${planName} no longer serves them by the time they are final.\n`,
    );
  }
  const undocumented = intervals((tier) => !tier.isRefused && documentedDepth(PLANS[planName], tier.interval) === 0);
  if (undocumented.length > 0) {
    out.write(
      `As documented, plan ${planName} includes no ${undocumented.map(describeInterval).join(', ')}. One request will check this; chandler gaps shows what is refused.\n`,
    );
  }
}

function printCost(out: Output, { wantedPerDay, requestsPerDay }: TrackedPlan, perDay: number | null): void {
  if (wantedPerDay === 0) return;
  const wanted = `Keeping every target age costs ${formatCounted(Math.ceil(wantedPerDay), 'request')} a day`;
  const available = perDay === null ? '' : formatCount(Math.floor(perDay));
  if (perDay === null) out.write(`\n${wanted}.\n`);
  else if (wantedPerDay <= perDay) out.write(`\n${wanted}; ${available} are available.\n`);
  else {
    const planned = formatCount(Math.min(Math.ceil(requestsPerDay), Math.floor(perDay)));
    out.write(
      `\n${wanted}, but only ${available} are available. Chandler plans ${planned} a day and reaches the achievable ages above.\n`,
    );
  }
}

export function printRemoved(
  out: Output,
  { removed: rules, stillTracked: still, cancelled, shortened }: Omit<RemovedRules, 'report'>,
  { applied, tiers, givesOnlyLastDay }: TrackReport,
): void {
  out.write(`${formatCounted(rules, 'rule')} removed; ${formatCounted(applied.series, 'series')} still tracked.\n`);
  if (applied.ended > 0) {
    const ended = formatCounted(applied.ended, 'series');
    out.write(
      `${ended} no longer tracked. Stored data stays; the newest candles are requested until they are final.\n`,
    );
  }
  for (const id of cancelled) out.write(`Backfill ${id}, of their past, is cancelled.\n`);
  for (const { id, coins } of shortened)
    out.write(`Backfill ${id}, of the past, leaves out ${formatCounted(coins, 'coin')} that no rule wants any more.\n`);
  if (still > 0) {
    const series = formatCounted(still, 'series');
    out.write(`Other rules still track ${series} of these coins (chandler track list).\n`);
  }
  if (tiers.length === 0) return;
  out.write('\n');
  printTiers(out, tiers, givesOnlyLastDay);
}

export function rulesAsJson(rules: readonly SavedRule[], tiers: readonly TierStatus[]) {
  return { rules: rules.map((rule) => withIso(rule, 'since', 'createdAt')), tiers };
}

export function printRules(
  out: Output,
  rules: readonly SavedRule[],
  tiers: readonly TierStatus[],
  givesOnlyLastDay: boolean,
): void {
  if (rules.length === 0) {
    out.write('Nothing is tracked yet. Begin with: chandler track add --top 100\n');
    return;
  }
  printTable(out, gathered(rules), [
    text('coins', describeCoins),
    whole('series', ({ rule }) => formatSeries(rule)),
    whole('since', ({ rule }) => formatDay(rule.since)),
    number('priority', ({ rule }) => String(rule.priority)),
    number('target age', ({ rule }) => formatDuration(rule.targetAgeMs)),
  ]);
  if (tiers.length === 0) return;
  out.write('\n');
  printTiers(out, tiers, givesOnlyLastDay);
}

type Gathered = {
  readonly rule: SavedRule & { readonly tier: Tier; readonly interval: Interval };
  readonly coinIds: string[];
};

/** Coins with the same terms share one row. */
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
