/** What needs attention, and what the operator can do about each. Only maintained figures are read, and index look-ups. */
import type { App } from '../../app.ts';
import { type Budget, readPlanning } from '../../budget.ts';
import type { Instant } from '../../clock.ts';
import { formatCounted, formatDuration } from '../../core/format.ts';
import { DAY, describeInterval } from '../../core/interval.ts';
import type { Chip } from '../../dashboard/parts/head.tsx';
import type { Need } from '../../dashboard/parts/needs.tsx';
import { planTiers } from '../../ingest/tracking/freshness.ts';
import { readTiers } from '../../store/tracking/tracked-tier.ts';
import { countResumable, readFailedBackfills } from '../../views/dashboard/backfill-figures.ts';
import { type MetHistoryLimit, readHistoryLimits } from '../../views/dashboard/history-limits.ts';
import { type OpenGaps, readOpenGaps } from '../../views/dashboard/open-gaps.ts';
import { freshnessOptions } from '../actions/track-rules.ts';
import type { State } from '../notice/states.ts';
import { priceOfGaps, slotsOfGaps } from './gap-actions.ts';
import { type Holds, needsOfHolds } from './holds.ts';

/** Missing data, as a need of Home and as a chip at the top of every page. */
export type MissingData = { readonly need: Need; readonly chip: Chip | null };

type Planning = Awaited<ReturnType<typeof readPlanning>>;

/** A history limit that the upstream showed longer ago than this is no news. */
const LIMIT_IS_NEWS_MS = DAY;
const WORST = '/ui/coverage?sort=worst';

/** History limits that requests have met, and gaps that no backfill or schedule fetches. */
export async function readMissingData(
  app: App,
  { plan, planSource }: Pick<Budget, 'plan' | 'planSource'>,
): Promise<readonly MissingData[]> {
  const { sql } = app.database;
  const now = app.clock.now();
  const [limits, gaps, planning] = await Promise.all([
    // The limits of an assumed plan may differ from the account's.
    planSource === 'assumed' ? [] : readHistoryLimits(sql, plan, now - LIMIT_IS_NEWS_MS),
    readOpenGaps(sql, now),
    readPlanning(app, plan),
  ]);
  return [...(limits.length === 0 ? [] : [limitsMet(limits, plan)]), ...missingDataOf(gaps, planning, now)];
}

function limitsMet(limits: readonly MetHistoryLimit[], plan: string): MissingData {
  const each = limits.map(({ interval, depthMs }) => {
    const candles = describeInterval(interval);
    return depthMs === null ? `no ${candles}` : `the last ${formatDuration(depthMs)} of ${candles}`;
  });
  return {
    need: {
      text: `Requests reached a history limit of the plan ${plan}, which gives ${each.join(', ')}. The upstream answered: ${limits[0]!.message}`,
      since: Math.min(...limits.map(({ refusedAt }) => refusedAt)),
      kind: 'warn',
      requests: null,
      button: { text: 'See other plans', href: '/ui/quota#plans' },
    },
    chip: { text: 'history limit', href: '/ui/quota#plans', kind: 'warn' },
  };
}

function missingDataOf(gaps: OpenGaps, planning: Planning, now: Instant): readonly MissingData[] {
  const need = { since: null, kind: 'warn', requests: null } as const;
  const map = { text: 'See the worst series', href: WORST };
  const chip = { text: 'gaps', href: WORST, kind: 'warn' } as const;
  if (gaps.kind === 'unknown') {
    const text =
      'The number of gaps is not known: there are many series, and no service has counted their gaps lately.';
    return [{ need: { ...need, text, button: { text: 'See the map', href: WORST } }, chip: null }];
  }
  if (gaps.kind === 'counted') {
    const slots = gaps.intervals.reduce((sum, one) => sum + one.slots, 0);
    if (slots === 0) return [];
    const text = `${formatCounted(slots, 'slot')} ${slots === 1 ? 'is' : 'are'} missing, including slots that the upstream refuses and slots that open backfills fetch. The map shows where, and what it costs to fill a part.`;
    return [{ need: { ...need, text, button: map }, chip }];
  }
  if (gaps.series.length === 0) return [];
  const slots = slotsOfGaps(gaps.series);
  const { requests, beyond } = priceOfGaps(gaps.series, planning, now);
  const unsure =
    beyond === 0
      ? ''
      : ` ${formatCounted(beyond, 'slot')} of them ${beyond === 1 ? 'is' : 'are'} older than the documented history limit of the plan: the cost includes only the requests that check this limit.`;
  const text = `${formatCounted(slots, 'slot')} of ${formatCounted(gaps.series.length, 'series')} ${slots === 1 ? 'is' : 'are'} missing and can be requested now, without the last two days and without what open backfills fetch.${unsure} The map shows where.`;
  const fill = { text: 'Fill the gaps', href: '/ui/do/fill-gaps' };
  return [
    requests > 0
      ? { need: { ...need, text, requests, button: fill, more: map }, chip }
      : { need: { ...need, text, button: map }, chip },
  ];
}

/** The page lists the newest failed backfills, at most so many. */
const MOST_FAILED = 5;
const FAILURE_IS_NEWS_MS = 7 * DAY;

/** Null when no backfill failed lately. */
export async function failedChip({ clock, database: { sql } }: App): Promise<Chip | null> {
  const failed = await countResumable(sql, clock.now() - FAILURE_IS_NEWS_MS);
  return failed === 0 ? null : { text: `${formatCounted(failed, 'backfill')} failed`, href: '/', kind: 'bad' };
}

/** Additional requests a day that the quota would have to allow to meet all target ages. */
export async function readMissingPerDay(app: App, budget: Budget): Promise<number> {
  const options = await freshnessOptions(app, budget);
  const { wantedPerDay, requestsPerDay } = planTiers(await readTiers(app.database.sql), options);
  return Math.ceil(Math.max(0, wantedPerDay - requestsPerDay));
}

/** The worst need first. */
export async function readNeeds(
  { clock, database: { sql } }: App,
  {
    states,
    holds,
    missing,
    missingPerDay,
  }: {
    readonly states: readonly State[];
    readonly holds: Holds;
    readonly missing: readonly MissingData[];
    /** Additional requests a day for all target ages. Null when no tier is behind. */
    readonly missingPerDay: number | null;
  },
): Promise<readonly Need[]> {
  const failed = await readFailedBackfills(sql, { since: clock.now() - FAILURE_IS_NEWS_MS, most: MOST_FAILED });
  const more = failed.total - failed.rows.length;
  const shownLeft = failed.rows.reduce((sum, { leftRequests }) => sum + (leftRequests ?? 0), 0);
  return [
    ...states.map(
      ({ event, text, since }): Need => ({
        ...{ text, since, kind: event === 'behind' ? 'warn' : 'bad' },
        ...(event === 'behind' ? { requests: missingPerDay, isDaily: true } : { requests: null }),
        button:
          event === 'behind'
            ? { text: 'See the quota', href: '/ui/quota' }
            : { text: 'See the requests', href: '/ui/requests' },
      }),
    ),
    ...needsOfHolds(holds, states),
    ...failed.rows.map(
      ({ id, message, finishedAt, leftRequests, isDetached }): Need => ({
        text:
          leftRequests === 0
            ? `Backfill ${id} ended incomplete, and more requests would not change that: ${message ?? 'no reason is recorded'}.`
            : `Backfill ${id} failed: ${message ?? 'no reason is recorded'}.`,
        since: finishedAt,
        kind: leftRequests === 0 ? 'warn' : 'bad',
        requests: leftRequests === 0 ? null : leftRequests,
        button:
          isDetached && leftRequests !== 0
            ? { text: 'Resume', href: `/ui/do/resume?backfill=${id}` }
            : { text: 'See the backfill', href: `/ui/backfills/${id}` },
      }),
    ),
    ...(more > 0 ? [moreFailed(more, failed.leftRequests === null ? null : failed.leftRequests - shownLeft)] : []),
    ...missing.map(({ need }) => need),
  ];
}

function moreFailed(more: number, requests: number | null): Need {
  return {
    ...{ text: `${formatCounted(more, 'more backfill')} failed in the last seven days.`, since: null, kind: 'bad' },
    ...{ requests, button: { text: 'See the backfills', href: '/ui/backfills?all=true' } },
  };
}
