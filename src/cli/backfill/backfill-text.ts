/** The result of a backfill, as text. */

import { formatMoment, waitingFor } from '../../background/operator/wait-reasons.ts';
import type { Instant } from '../../clock.ts';
import {
  formatCount,
  formatCounted,
  formatDay,
  formatInstant,
  formatRelative,
  formatRoughly,
} from '../../core/format.ts';
import { describeInterval, rowNoun } from '../../core/interval.ts';
import type { BackfillEnd } from '../../ingest/backfill/progress.ts';
import type { RemainingSlots, SlotStatus } from '../../views/operations/remaining-slots.ts';
import { printPairs } from '../output/table.ts';
import type { Output } from '../shell/io.ts';
import { type BackfillReport, countsOf, isOutage, plannedRequests, retryableOf } from './backfill-report.ts';
import { type PlanReports, sum } from './plan-report.ts';

const MOST_FAILURES = 10;

export function printBackfillReport(out: Output, report: BackfillReport, now: Instant): void {
  out.write(`\n${headline(report, now).trimEnd()}\n\n`);
  printPairs(out, linesOf(report, now));
}

function linesOf(report: BackfillReport, now: Instant): [name: string, text: string][] {
  const { run } = report;
  const { stored, revised, quarantined } = countsOf(report);
  const received = run.totals === null ? '' : ` (${formatCounted(run.totals.rows, 'row')} received)`;
  const noun = rowNoun(report.planned.target.interval);
  const lines: [string, string][] = [
    ['stored', `${formatCounted(stored, noun)}${received}`],
    ['revised', formatCounted(revised, `final ${noun}`)],
    ['quarantined', formatCounted(quarantined, 'invalid row')],
    ['requests', requestsText(report)],
    ['took', `${formatRoughly(run.tookMs)}${speedText(stored, noun, run.tookMs)}`],
  ];
  for (const [reason, { chunks, message }] of run.refused) {
    lines.push(['refused', `${formatCounted(chunks, 'request')}: ${reason} (${message})`]);
  }
  for (const { coinId, span, message } of run.failed.slice(0, MOST_FAILURES)) {
    lines.push(['failed', `${coinId} ${formatDay(span.from)} to ${formatDay(span.to)}: ${message}`]);
  }
  const more = run.failed.length - MOST_FAILURES;
  if (more > 0) lines.push(['', `and ${formatCount(more)} more failed`]);
  return [...lines, ...leftLines(run.left, noun, now)];
}

function requestsText(report: BackfillReport): string {
  const { totals } = report.run;
  const failed = Object.entries(totals?.byOutcome ?? {}).filter(([outcome]) => outcome !== 'stored');
  const which = failed.map(([outcome, n]) => `${formatCount(n)} ${outcome}`).join(', ');
  const sent = `${formatCount(countsOf(report).requests)} ${totals === null ? 'answered and stored' : 'sent'}`;
  return `${sent}, ${formatCount(plannedRequests([report], []))} planned${which === '' ? '' : ` (failed: ${which})`}`;
}

function headline({ run, rest }: BackfillReport, now: Instant): string {
  const { end, left } = run;
  const slotsOf = (status: SlotStatus) => sum(left ?? [], (one) => (one.fate === status ? one.slots : 0));
  switch (end.kind) {
    case 'done': {
      if (left === null)
        return 'Done, but it is unknown whether anything is left. Run the same command again to find out.';
      const [later, failed, refused] = [slotsOf('later'), slotsOf('failed'), slotsOf('refused')];
      if (later > 0) {
        const next = retryableOf(left);
        const when = next === null || next.from <= now ? '' : ` from ${formatInstant(next.from)} on`;
        return `Not complete: ${formatCounted(later, 'slot')} without a final answer. Run the same command again${when}; nothing is lost.`;
      }
      if (failed > 0) {
        return `Done, except for ${formatCounted(failed, 'slot')} that could not be fetched: every attempt failed, or the rows stay invalid. Run the same command again to retry.`;
      }
      if (refused === 0) return 'Done: nothing left to fetch.';
      return `Done with what the upstream allows; it refuses ${formatCounted(refused, 'slot')} (chandler gaps shows why).`;
    }
    case 'interrupted':
      return 'Interrupted. Answers that still arrived were stored, and nothing is lost. Run the same command again to continue.';
    case 'stopped':
      return `${stopText(end, now)}\n${restText(rest, now)}`;
    case 'configurationError':
      return 'Stopped early: the upstream refuses these requests. Check your API key and base URL, then run the same command again; nothing stored is lost.';
  }
}

function stopText({ reason, until }: Extract<BackfillEnd, { kind: 'stopped' }>, now: Instant): string {
  const why = `Stopped early: ${waitingFor(reason)}`;
  const how = 'or now with a longer --max-wait; nothing is lost.';
  // Within a second: the run waited for the probe of another process.
  if (until <= now + 1_000 || isOutage(reason)) {
    return `${why}, for longer than --max-wait allows. Run the same command again later, ${how}`;
  }
  return `${why}. Requests continue at ${formatMoment(until, now)}, later than --max-wait allows. Run the same command again then, ${how}`;
}

function restText(rest: BackfillReport['rest'], now: Instant): string {
  if (rest === null || rest.requests === 0) return '';
  const { requests, finishAt } = rest;
  const when =
    finishAt === null ? '' : `: done ${formatInstant(finishAt)} at the earliest, ${formatRelative(finishAt, now)}`;
  return `The rest takes ${formatCounted(requests, 'request')}${when}.`;
}

/** Empty when there is no rate: it took less than a second, or stored nothing. */
function speedText(stored: number, noun: string, tookMs: number): string {
  return stored > 0 && tookMs >= 1000 ? `, ${formatCount(stored / (tookMs / 1000))} ${noun}s/s` : '';
}

/** What is left by reason, and when it can be requested again. */
function leftLines(left: readonly RemainingSlots[] | null, noun: string, now: Instant): [name: string, text: string][] {
  if (left === null) return [['gaps left', 'unknown while the database is unavailable']];
  const total = sum(left, ({ slots }) => slots);
  if (total === 0) return [['gaps left', `none: every slot has a ${noun} or is known to be empty`]];
  const parts = left.map(({ slots, reason, fate }) => `${formatCount(slots)} ${reason}${REMARK[fate]}`);
  const lines: [string, string][] = [['gaps left', `${formatCounted(total, 'slot')}: ${parts.join(', ')}`]];
  for (const { slots, reason, fate, nextAskAt } of left) {
    if (fate !== 'later' || nextAskAt === null) continue;
    const when = nextAskAt <= now ? 'now' : `from ${formatMoment(nextAskAt, now)}`;
    lines.push(['', `the same command can request ${formatCount(slots)} ${reason} again ${when}`]);
  }
  return lines;
}

/** Facts that the reason of a gap does not contain. */
const REMARK: Readonly<Record<SlotStatus, string>> = {
  'too young': ' (too recent to be final)',
  failed: ' (failed)',
  later: '',
  refused: '',
};

/** The sums of several intervals. `left`: those that did not run, because an earlier one ended early. */
export function printBackfillTotal(out: Output, reports: readonly BackfillReport[], left: PlanReports): void {
  const stored = sum(reports, (report) => countsOf(report).stored);
  const requests = sum(reports, (report) => countsOf(report).requests);
  const slots = sum(reports, ({ run }) => sum(run.left ?? [], (one) => one.slots));
  const parts = [
    `${formatCounted(stored, 'row')} stored`,
    `${formatCounted(requests, 'request')} sent`,
    `${formatCount(plannedRequests(reports, left))} planned`,
    reports.some(({ run }) => run.left === null) ? 'gaps left unknown' : `${formatCounted(slots, 'slot')} left`,
    formatRoughly(sum(reports, ({ run }) => run.tookMs)),
  ];
  out.write(`\nTotal: ${parts.join(', ')}.\n`);
  if (left.length === 0) return;
  const names = left.map(({ target }) => describeInterval(target.interval));
  const intervals = [names.slice(0, -1).join(', '), names.at(-1)].filter(Boolean).join(' and ');
  out.write(`Not started: ${intervals}; run the same command again for them.\n`);
}
