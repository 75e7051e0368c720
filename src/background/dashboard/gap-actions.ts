/** Filling all gaps that no backfill or schedule fetches: its cost, and the action. */
import type { App } from '../../app.ts';
import { readBudget, readPlanning } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import { rowsPerRequest } from '../../contract/plan/plans.ts';
import { asError } from '../../core/as-error.ts';
import { countChunks, countSlots } from '../../core/chunk.ts';
import { formatCounted, formatInstant, formatSeries } from '../../core/format.ts';
import type { Interval } from '../../core/interval.ts';
import { intersect } from '../../core/span.ts';
import { type Action, ActionFailed } from '../../dashboard/action.ts';
import { type BackfillPlan, type BackfillTarget, planBackfill } from '../../ingest/backfill/plan.ts';
import { expectedDepth, type HistoryLimit } from '../../ingest/limits/history-limit.ts';
import { splitAtReach } from '../../ingest/limits/last-day.ts';
import { readOpenGaps, type SeriesGaps } from '../../views/dashboard/open-gaps.ts';
import type { Recorded } from '../actions/record-backfill.ts';
import { commandOf, forecastOfFill, probeSentence, recordFill } from './fill-sentences.ts';

type Planning = Pick<Awaited<ReturnType<typeof readPlanning>>, 'plan' | 'historyLimits'>;

/**
 * The cost of filling them, as the planner counts: requests within the expected history limits, and one probe for each interval whose
 * documented limit is not confirmed yet. `beyond`: slots that are older than that limit.
 */
export function priceOfGaps(
  series: readonly SeriesGaps[],
  { plan, historyLimits }: Planning,
  now: Instant,
): { readonly requests: number; readonly beyond: number } {
  let [requests, beyond] = [0, 0];
  const probed = new Set<Interval>();
  for (const { interval, gaps } of series.flatMap(stretchesOf)) {
    const limit = historyLimits.of(interval);
    const split = splitAtReach(gaps, expectedDepth(limit), interval, now);
    requests += countChunks(split.within, interval, rowsPerRequest(plan, interval));
    const older = countSlots(split.beyond, interval);
    if (limit.kind !== 'documented' || older === 0) continue;
    probed.add(interval);
    beyond += older;
  }
  return { requests: requests + probed.size, beyond };
}

export function slotsOfGaps(series: readonly Stretch[]): number {
  return series.reduce((sum, { interval, gaps }) => sum + countSlots(gaps, interval), 0);
}

/** One action records at most so many backfills. */
const MOST_BACKFILLS = 50;

/** Gaps of one series. All slots between them are wanted, so a backfill of the whole stretch requests nothing unwanted. */
type Stretch = Pick<SeriesGaps, 'coinId' | 'interval' | 'quote' | 'gaps'>;

/** Groups of stretches with the same interval, quote, begin and end; the group with the most missing slots first. */
function groupsOf(series: readonly SeriesGaps[]): Stretch[][] {
  const groups = new Map<string, Stretch[]>();
  for (const one of series.flatMap(stretchesOf)) {
    const key = [one.interval, one.quote, one.gaps[0]!.from, one.gaps.at(-1)!.to].join(' ');
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return [...groups.values()]
    .map((group) => ({ group, slots: slotsOfGaps(group) }))
    .toSorted((a, b) => b.slots - a.slots)
    .map(({ group }) => group);
}

function stretchesOf({ gaps, wanted, ...series }: SeriesGaps): Stretch[] {
  return wanted.flatMap((span) => {
    const within = intersect(gaps, [span]);
    return within.length === 0 ? [] : [{ ...series, gaps: within }];
  });
}

function targetOf(group: readonly Stretch[]): BackfillTarget {
  const { interval, quote, gaps } = group[0]!;
  const span = { from: gaps[0]!.from, to: gaps.at(-1)!.to };
  return { coinIds: group.map(({ coinId }) => coinId), interval, quote, span };
}

type Planned = { readonly target: BackfillTarget; readonly historyLimit: HistoryLimit } & Pick<
  BackfillPlan,
  'cost' | 'costIfOpen' | 'probe'
>;

/** Plans with the gaps as they are now, without those that another backfill fetches meanwhile. */
export async function fillGaps(app: App): ReturnType<Action> {
  const { sql } = app.database;
  const now = app.clock.now();
  const gaps = await readOpenGaps(sql, now);
  if (gaps.kind !== 'exact')
    throw new ActionFailed('there are too many series to fill all gaps at once; select a part on the map');
  const all = groupsOf(gaps.series).map(targetOf);
  const targets = all.slice(0, MOST_BACKFILLS);
  const budget = await readBudget(app);
  const { plan, historyLimits } = await readPlanning(app, budget.plan);
  const place = { id: null, priority: 0 };
  const planned: Planned[] = [];
  for (const target of targets) {
    const historyLimit = historyLimits.of(target.interval);
    const { cost, probe, costIfOpen } = await planBackfill({
      ...{ sql, target, now, requestedSince: now, plan, historyLimit, place },
    });
    if (cost.requests > 0) planned.push({ target, cost, costIfOpen, probe, historyLimit });
  }
  if (planned.length === 0) throw new ActionFailed('no slot is missing that can be requested now');
  const requests = requestsOf(planned);
  const more = all.length - targets.length;
  return {
    question: `Fill the gaps of ${formatCounted(countSeries(planned), 'series')}?`,
    verb: `Send ${formatCounted(requests, 'request')}`,
    sentences: [
      `This records ${formatCounted(planned.length, 'backfill')}. Coins with the same gaps share one backfill.`,
      ...planned.slice(0, 10).map(({ target, cost }) => describe(target, cost.requests)),
      ...(planned.length > 10 ? [`And ${formatCounted(planned.length - 10, 'more backfill')}.`] : []),
      ...(more > 0 ? [`${formatCounted(more, 'group')} of gaps ${more === 1 ? 'is' : 'are'} left for later.`] : []),
      ...describeProbes(planned),
    ],
    requests,
    done: await forecastOfFill(app, budget, requests),
    command: planned.flatMap(({ target }, i) => [...(i === 0 ? [] : ['&&']), ...commandOf(target)]),
    next: '/ui/backfills',
    act: async (actor) => {
      const recorded: Recorded[] = [];
      try {
        for (const { target, historyLimit } of planned)
          recorded.push(await recordFill(app, { target, plan, historyLimit, historyLimits }, actor));
      } catch (error) {
        if (recorded.length === 0) throw error;
        throw new ActionFailed(`${describeRecorded(recorded)} The others are not: ${asError(error).message}`);
      }
      return [describeRecorded(recorded)];
    },
  };
}

function countSeries(planned: readonly Planned[]): number {
  return new Set(
    planned.flatMap(({ target: { coinIds, interval, quote } }) => coinIds.map((id) => [id, interval, quote].join(' '))),
  ).size;
}

/** One probe per interval is enough: its result holds for the other backfills of the interval, too. */
function requestsOf(planned: readonly Planned[]): number {
  const probes = planned.filter(({ probe }) => probe);
  const intervals = new Set(probes.map(({ target }) => target.interval));
  return planned.reduce((sum, { cost }) => sum + cost.requests, 0) - probes.length + intervals.size;
}

function describeProbes(planned: readonly Planned[]): string[] {
  if (!planned.some(({ probe }) => probe)) return [];
  const ifOpen = planned.reduce((sum, { costIfOpen }) => sum + costIfOpen.requests, 0);
  return [`Some slots are older than the documented limit of the plan. ${probeSentence(ifOpen)}`];
}

function describeRecorded(recorded: readonly Recorded[]): string {
  const ids = recorded.map(({ id }) => id);
  const requests = recorded.reduce((sum, one) => sum + one.requests, 0);
  return `${ids.length === 1 ? 'Backfill' : 'Backfills'} ${ids.join(', ')} ${ids.length === 1 ? 'is' : 'are'} recorded: ${formatCounted(requests, 'request')} at most.`;
}

function describe(target: BackfillTarget, requests: number): string {
  const { coinIds, span } = target;
  const coins =
    coinIds.length <= 3 ? coinIds.join(', ') : `${coinIds.slice(0, 3).join(', ')} and ${coinIds.length - 3} more`;
  return `${formatSeries(target)} of ${coins}, ${formatInstant(span.from)} to ${formatInstant(span.to)}: ${formatCounted(requests, 'request')}.`;
}
