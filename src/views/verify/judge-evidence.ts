/** Checks that the evidence of a series is one unbroken chain, and that its steps are possible. Pure. */
import { formatCounted } from '../../core/format.ts';
import { INTERVAL_MS } from '../../core/interval.ts';
import type { Account } from './account.ts';
import { brokenLinks } from './chain.ts';
import type { Findings } from './findings.ts';
import type { Evidence, SeriesRow } from './read-series.ts';
import { isWholeRow, makesFinal } from './steps.ts';

export function judgeEvidence(
  series: SeriesRow,
  evidence: readonly Evidence[],
  account: Account,
  findings: Findings,
): void {
  judgeEnd(series, evidence, findings);
  const unknown = new Set(account.rows.map(({ row }) => row));
  const broken = new Set(brokenLinks(series, evidence, account, unknown));
  let expected = 1;
  let knownAt = Number.NEGATIVE_INFINITY;
  for (const [i, row] of evidence.entries()) {
    const { number } = row;
    const report = (text: string) => findings.reportOfSeries(text, number);
    // A step that is missing before the repair of a whole series is older than the repair.
    if (number !== expected)
      findings.reportOfSeries(`step ${expected} of the evidence is missing`, i === findings.anew ? number - 1 : number);
    if (number < 1) report(`step ${number} of the evidence has an impossible number`);
    if (broken.has(i)) report(`step ${number} of the evidence is not linked to the step before it`);
    if (!row.isOnGrid || !isWholeRow(row, INTERVAL_MS[series.interval]))
      report(`step ${number} of the evidence has impossible slots or times`);
    if (row.knownAt < knownAt) report(`step ${number} of the evidence is older than the step before it`);
    if (makesFinal(row) && row.slots.length === 0) report(`step ${number} of the evidence contains no slots`);
    knownAt = row.knownAt;
    expected = number + (row.stepSeconds?.length ?? 1);
  }
  judgeNames(series, evidence, findings);
}

function judgeEnd(series: SeriesRow, evidence: readonly Evidence[], { reportOfSeries }: Findings): void {
  const newest = evidence.at(-1);
  const counted = newest === undefined ? 0 : newest.number + (newest.stepSeconds?.length ?? 1) - 1;
  if (series.steps !== counted) {
    const left = counted === 0 ? 'all evidence is missing' : `evidence ends with step ${counted}`;
    reportOfSeries(`${left}, but the series records ${formatCounted(series.steps, 'step')}`);
  }
  if ((series.link ?? null) !== (newest?.link ?? null))
    reportOfSeries('the link of the series differs from the link of its newest step of evidence');
}

function judgeNames(series: SeriesRow, evidence: readonly Evidence[], { anew, reportOfSeries }: Findings): void {
  let name: string | null = null;
  let last = 0;
  for (const { kind, detail, number } of evidence.slice(Math.max(0, anew))) {
    if (kind !== 'renamed') continue;
    const [before, after] = (detail ?? '').split(' ');
    if (name !== null && before !== name) reportOfSeries(`step ${number} renames ${before}, but the coin was ${name}`);
    name = after ?? null;
    last = number;
  }
  if (name !== null && name !== series.coinId)
    reportOfSeries(`the coin is ${series.coinId}, but the evidence (step ${last}) ends with ${name}`);
}
