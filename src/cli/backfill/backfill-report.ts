/** What a backfill did, at its end: stored, revised, set aside, refused and why, requests spent, gaps left. */
import type { App } from '../../app.ts';
import type { Instant } from '../../clock.ts';
import type { BackfillRun } from '../../ingest/backfill/backfill.ts';
import { planBackfill } from '../../ingest/backfill/plan.ts';
import type { BackfillEnd } from '../../ingest/backfill/progress.ts';
import { DATABASE_AWAY, QUEUE_AWAY } from '../../ingest/request/outage-retry.ts';
import { isDatabaseAway } from '../../store/connection/database-unavailable.ts';
import type { BackfillTotals } from '../../store/work/backfill.ts';
import {
  type AskedAgain,
  type GapTotal,
  isRefusal,
  readAskedAgain,
  readGapTotals,
} from '../../views/operations/gaps.ts';
import {
  formatCount,
  formatCounted,
  formatDay,
  formatInstant,
  formatRelative,
  formatRoughly,
} from '../output/format.ts';
import { toIso } from '../output/json.ts';
import { formatMoment, waitingFor } from '../output/wait-reasons.ts';
import type { Output } from '../shell/io.ts';
import { finishByLimits, forecastOf, type PlanReport } from './plan-report.ts';

export type BackfillReport = {
  readonly run: BackfillRun;
  /** Null: the database was away at the end, and only what this process saw is known. */
  readonly totals: BackfillTotals | null;
  readonly planned: number;
  readonly catalogueRequests: number;
  readonly tookMs: number;
  /** What is missing in the series asked for, by reason; most first. Null: the database was away. */
  readonly gaps: readonly GapTotal[] | null;
  /** What the same command asks about again later; null: nothing, or the database was away. */
  readonly again: AskedAgain | null;
  /** What the same command would still ask, and when that is done; null unless the run was stopped before its end. */
  readonly rest: { readonly requests: number; readonly finishAt: Instant | null } | null;
};

export async function makeBackfillReport(app: App, report: PlanReport, run: BackfillRun): Promise<BackfillReport> {
  const { sql } = app.database;
  const { coinIds, interval, quote, catalogueRequests } = report.target;
  return {
    run,
    totals: run.totals,
    planned: report.plan.cost.requests,
    catalogueRequests,
    tookMs: run.tookMs,
    gaps: await unlessAway(readGapTotals(sql, { coinIds, interval, quote })),
    again: await unlessAway(readAskedAgain(sql, { coinIds, interval, quote })),
    rest: run.end.kind === 'stopped' ? await unlessAway(forecastRest(app, report)) : null,
  };
}

/** Null when the database is away. */
function unlessAway<T>(reading: Promise<T>): Promise<T | null> {
  return reading.catch((error: unknown) => {
    if (!isDatabaseAway(error)) throw error;
    return null;
  });
}

async function forecastRest({ database: { sql }, clock }: App, report: PlanReport): Promise<BackfillReport['rest']> {
  const { target, session } = report;
  const now = clock.now();
  const wall = session.walls.of(target.interval);
  const plan = await planBackfill({ sql, target, now, askedSince: now, plan: session.plan, wall });
  const { requests } = plan.cost;
  const forecast = forecastOf({ ...report, now, quota: await session.quota.state() }, requests);
  return { requests, finishAt: finishByLimits(forecast, requests) };
}

export function printBackfillReport(out: Output, report: BackfillReport, now: Instant): void {
  const { run, totals, planned, tookMs, gaps, again } = report;
  const { requests, stored, revised, setAside } = totals ?? run.seen;
  out.write(`\n${headline(report, now).trimEnd()}\n\n`);
  const failing = Object.entries(totals?.byOutcome ?? {}).filter(([outcome]) => outcome !== 'stored');
  const lines: [string, string][] = [
    [
      'stored',
      `${formatCounted(stored, 'candle')}${totals === null ? '' : ` (${formatCounted(totals.rows, 'row')} answered)`}`,
    ],
    ['revised', formatCounted(revised, 'candle that was final', 'candles that were final')],
    ['set aside', formatCounted(setAside, 'impossible row')],
    [
      'requests',
      `${formatCount(requests)} ${totals === null ? 'answered and kept' : 'spent'}, ${formatCount(planned)} planned${failing.length === 0 ? '' : ` (not answered well: ${failing.map(([outcome, n]) => `${formatCount(n)} ${outcome}`).join(', ')})`}`,
    ],
    ['took', `${formatRoughly(tookMs)}${speedText(stored, tookMs)}`],
  ];
  for (const [reason, { chunks, message }] of run.refused) {
    lines.push(['refused', `${formatCounted(chunks, 'request')}: ${reason} (${message})`]);
  }
  for (const { coinId, span, message } of run.failed.slice(0, 10)) {
    lines.push(['failed', `${coinId} ${formatDay(span.from)} to ${formatDay(span.to)}: ${message}`]);
  }
  if (run.failed.length > 10) lines.push(['', `and ${formatCount(run.failed.length - 10)} more failed`]);
  lines.push(['gaps left', gapsText(gaps)]);
  if (again !== null) {
    const when = again.from <= now ? 'now' : `from ${formatMoment(again.from, now)}`;
    lines.push(['', `the same command asks about ${formatCounted(again.slots, 'slot')} again ${when}`]);
  }
  for (const [name, text] of lines) out.write(`  ${name.padEnd(10)} ${text}\n`);
}

function headline({ run, gaps, rest }: BackfillReport, now: Instant): string {
  const { end, failed } = run;
  switch (end.kind) {
    case 'done': {
      if (failed.length > 0) {
        return `Done but for ${formatCounted(failed.length, 'request')} that failed at every attempt. Give the same command again to try those.`;
      }
      const refused = (gaps ?? []).filter(({ reason }) => isRefusal(reason)).reduce((sum, { slots }) => sum + slots, 0);
      if (refused === 0) return 'Done: nothing worth a request is left.';
      return `Done with what can be had; the upstream refuses ${formatCounted(refused, 'slot')} (chandler gaps says why).`;
    }
    case 'interrupted':
      return 'Interrupted: what was in flight is stored. Give the same command again, nothing is lost.';
    case 'stopped':
      return `${stopText(end, now)}\n${restText(rest, now)}`;
    case 'misconfigured':
      return 'Ended early: upstream cannot be asked like this. What was stored stays; correct it and run it again.';
  }
}

function stopText({ reason, until }: Extract<BackfillEnd, { kind: 'stopped' }>, now: Instant): string {
  const why = `Stopped early: ${waitingFor(reason)}`;
  const how = 'or now with a longer --max-wait; nothing is lost.';
  // It failed until now: nobody knows when that ends.
  if (until <= now || isAway(reason))
    return `${why}, for longer than --max-wait allows. Give the same command again later, ${how}`;
  return `${why}. It goes on at ${formatMoment(until, now)}, later than --max-wait allows. Give the same command again then, ${how}`;
}

function restText(rest: BackfillReport['rest'], now: Instant): string {
  if (rest === null || rest.requests === 0) return '';
  const { requests, finishAt } = rest;
  const when =
    finishAt === null ? '' : `: done ${formatInstant(finishAt)} at the earliest, ${formatRelative(finishAt, now)}`;
  return `What is left takes ${formatCounted(requests, 'request')}${when}.`;
}

/** Nobody knows when that ends. */
const isAway = (reason: string) => reason === DATABASE_AWAY || reason === QUEUE_AWAY;

/** A rate over less than a second, or of nothing, tells nothing. */
function speedText(candles: number, tookMs: number): string {
  return candles > 0 && tookMs >= 1000 ? `, ${formatCount(candles / (tookMs / 1000))} candles/s` : '';
}

function gapsText(gaps: readonly GapTotal[] | null): string {
  if (gaps === null) return 'not known while the database is away';
  const slots = gaps.reduce((sum, gap) => sum + gap.slots, 0);
  if (slots === 0) return 'none: every slot is a candle, or known to be empty';
  return `${formatCounted(slots, 'slot')}: ${gaps.map((gap) => `${formatCount(gap.slots)} ${gap.reason}`).join(', ')}`;
}

export function backfillAsJson({
  run,
  totals,
  planned,
  catalogueRequests,
  tookMs,
  gaps,
  again,
  rest,
}: BackfillReport): Record<string, unknown> {
  const { end } = run;
  const { requests, stored, revised, setAside } = totals ?? run.seen;
  return {
    id: run.id,
    end: end.kind,
    ...(end.kind === 'stopped' ? { until: isAway(end.reason) ? null : toIso(end.until), reason: end.reason } : {}),
    ...(end.kind === 'misconfigured' ? { message: end.message } : {}),
    ...(rest === null ? {} : { requestsLeft: rest.requests, finishAt: toIso(rest.finishAt) }),
    requests,
    requestsPlanned: planned,
    catalogueRequests,
    rows: totals?.rows ?? null,
    stored,
    revised,
    setAside,
    byOutcome: totals?.byOutcome ?? null,
    refused: [...run.refused].map(([reason, of]) => ({ reason, ...of })),
    failed: run.failed.map(({ coinId, span, message }) => ({
      coinId,
      from: toIso(span.from),
      to: toIso(span.to),
      message,
    })),
    gaps: gaps?.map(({ reason, slots }) => ({ reason, slots })) ?? null,
    askedAgain: again === null ? null : { slots: again.slots, from: toIso(again.from) },
    tookMs,
  };
}
