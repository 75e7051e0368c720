/** Finds what is wrong with a series, and where, from the sums of its steps and the stored data. Pure. */
import type { Instant } from '../../clock.ts';
import { countSlots } from '../../core/chunk.ts';
import { formatCounted } from '../../core/format.ts';
import { INTERVAL_MS, isPriceInterval } from '../../core/interval.ts';
import { contains, intersect, normalize, type Span, type Spans, slotsAt, subtract } from '../../core/span.ts';
import type { Account, RowDifference } from './account.ts';
import { collectFindings, type Findings, type Judgement, where } from './findings.ts';
import { describeImpossibleTimes, type ImpossibleTimes } from './impossible-times.ts';
import { judgeEvidence } from './judge-evidence.ts';
import { isNothing, minus, modulo, NOTHING, placeOf, plus, type Sums } from './modulo.ts';
import type { Evidence, OddCandles, SeriesRow } from './read-series.ts';
import type { WrongRecord } from './records.ts';
import { finalBy } from './steps.ts';

type Stored = {
  readonly series: SeriesRow;
  readonly evidence: readonly Evidence[];
  readonly account: Account;
  readonly odd: OddCandles;
  readonly impossibleTimes: ImpossibleTimes | undefined;
  /** Revisions and requests that contradict the evidence. */
  readonly records: readonly WrongRecord[];
  /** The steps of the repairs before which no record was changed since. */
  readonly unchanged: ReadonlySet<number>;
};

/** No answer has other times, and `ops.uncover` mends no others. */
const POSSIBLE: Spans = [{ from: 0, to: Date.UTC(2200, 0, 1) }];

/** The clock of the upstream may be ahead of ours by this much. */
export const FUTURE_TOLERANCE_MS = 10 * 60_000;
/** The texts with which `ops.uncover` records what it found: about all steps, about one step, about candles outside coverage. */
const UNLIKE_TOLD = 'what was found differs from what was told:';
const OF_STEP =
  /step (\d+) told (\d+) candles \(digest ([0-9a-f]{16})\), found were (\d+) \(digest ([0-9a-f]{16})\), (which|the slot)[^;(]*(?:\(locator \+([0-9a-f]{16})\))?/g;
const OUTSIDE = 'outside coverage, candles did not add up';

export function judge(of: Stored, now: Instant): Judgement {
  const { series, evidence, account, unchanged } = of;
  const findings = collectFindings(evidence, unchanged);
  judgeRows(series, evidence, account, findings);
  const newest = account.steps.at(-1)?.number ?? 0;
  const answered = normalize(account.steps.flatMap(({ slots }) => slots));
  for (const { text, at, step } of oneOfEach([...account.revisions, ...of.records])) {
    // A record of a slot that no step is about stays beside every repair but that of the whole series.
    if (step <= newest && intersect(at, answered).length > 0) findings.reportOfStep(step, text, at);
    else findings.reportOfSeries(`${where(at)}: ${text}`, step);
  }
  judgeEvidence(series, evidence, account, findings);
  judgeSeries(series, evidence, account, findings);
  judgeShape(of, now, findings);
  if (of.impossibleTimes !== undefined)
    findings.reportRemovable(describeImpossibleTimes(of.impossibleTimes, 'candle'), of.impossibleTimes.statement);
  if (account.stored.left > 0)
    findings.note(`${formatCounted(account.stored.left, 'candle')} that retention has not removed yet`);
  const judgement = findings.close();
  return isPriceInterval(series.interval) ? ofPrices(judgement) : judgement;
}

/**
 * The same sentences in the words of a price series. Records of repairs say "candle" even for prices, because other repairs search for these
 * words.
 */
function ofPrices(judgement: Judgement): Judgement {
  const say = (text: string) => text.replace(/\bcandle(?=s?\b)/g, 'price').replace('(high below low, ', '(');
  return { ...judgement, differences: judgement.differences.map(say), notes: judgement.notes.map(say) };
}

/** Merges records with the same text into one record with all their slots. */
function oneOfEach(records: readonly WrongRecord[]): WrongRecord[] {
  const byText = new Map<string, { text: string; at: Span[]; step: number }>();
  for (const { text, at, step } of records) {
    const key = `${step} ${text}`;
    if (!byText.has(key)) byText.set(key, { text, at: [], step });
    byText.get(key)!.at.push(...at);
  }
  return [...byText.values()].map((record) => ({ ...record, at: normalize(record.at) }));
}

function judgeRows(series: SeriesRow, evidence: readonly Evidence[], account: Account, findings: Findings): void {
  const width = INTERVAL_MS[series.interval];
  for (const { number, slots, detail } of evidence.filter(isDoubted)) {
    const found = detail!.replace(/; kept before: .*$/, '');
    findings.note(`${where(slots)}: mended by step ${number}; before that, ${found}`);
  }
  const foundByRepair = repairedDifferences(evidence);
  const unmendedOf = (row: number) => {
    const mended = account.steps.filter((step) => step.kind === 'mended' && step.row > row);
    return subtract(normalize(evidence[row]!.slots), normalize(mended.flatMap((step) => step.slots)));
  };
  /** Whether a value that a later repair kept was changed. Then that repair differs by the same sums. */
  const isOfRepair = (rest: Sums, step: number) =>
    account.rows.some(({ row, difference }) => {
      const { kind, number } = evidence[row]!;
      return kind === 'mended' && number > step && isNothing(minus(difference, rest));
    });
  const judgeRow = (difference: Sums, rows: readonly number[]) => {
    const step = Math.max(...rows.map((row) => evidence[row]!.number));
    const slots = normalize(rows.flatMap((row) => evidence[row]!.slots));
    if (slots.length === 0) return findings.reportOfSeries(`step ${step} of the evidence has sums but no slots`, step);
    const unmended = normalize(rows.flatMap(unmendedOf));
    const known = rows.flatMap((row) => foundByRepair.get(evidence[row]!.number) ?? []);
    const rest = known.map(({ sums }) => sums).reduce(minus, difference);
    const isLocated = known.every(({ hasLocator }) => hasLocator);
    const isFound = rest.candles === 0 && rest.digest === 0n && (rest.locator === 0n || !isLocated);
    // A difference that a repair found without knowing the slot is settled when all slots are mended.
    if (isFound && (unmended.length === 0 || known.every(({ hasSlot }) => hasSlot))) return;
    const place = isFound || !isLocated ? null : placeOf(rest);
    const slot = place === null ? null : { from: place * width, to: (place + 1) * width };
    // The locator alone is no proof. If the slot that it names is settled, another slot differs.
    const isSettled = slot !== null && contains(findings.settledAfter(step), slot.from) && !isOfRepair(rest, step);
    const isOne = slot !== null && contains(slots, slot.from) && !isSettled;
    const left = isOne ? [slot] : unmended;
    const isUnmended = left.length > 0 && subtract(left, unmended).length === 0;
    if (isUnmended)
      findings.reportOfStep(step, `${ofRow(rest, isOne, countSlots(left, series.interval))} (step ${step})`, left);
    else
      findings.reportOfStep(
        step,
        `the stored rows of step ${step} were changed after they were mended`,
        isOne ? left : slots,
      );
  };
  const isOld = ({ row }: RowDifference) => row < findings.anew;
  for (const rows of [account.rows.filter(isOld), account.rows.filter((one) => !isOld(one))]) {
    let pool = NOTHING;
    const gone: number[] = [];
    for (const one of rows) {
      if (!one.isPartlyGone) judgeRow(one.difference, [one.row]);
      else {
        // Of these rows only the total is known, together with what retention found when it removed the rest.
        const isRetention = evidence[one.row]!.kind === 'retention';
        pool = isRetention ? plus(pool, evidence[one.row]!) : plus(pool, one.difference);
        if (!isRetention) gone.push(one.row);
      }
    }
    const last = rows.at(-1);
    if (isNothing(pool) || last === undefined) continue;
    if (gone.length === 0)
      findings.reportOfSeries('retention removed rows that no answer contains', evidence[last.row]!.number);
    else judgeRow(pool, gone);
  }
}

/** The record of a repair about a step: the sums that were found, minus those that the step reported. */
type Recorded = {
  readonly sums: Sums;
  /** The repair knew the only slot that differed. */
  readonly hasSlot: boolean;
  /** Older repairs did not record the locator. */
  readonly hasLocator: boolean;
};

/** By the number of the step. Of several repairs the last one counts, because it includes what those before it found. */
function repairedDifferences(evidence: readonly Evidence[]): ReadonlyMap<number, Recorded> {
  return new Map(
    evidence.filter(isDoubted).flatMap(({ detail }) =>
      Array.from(detail!.matchAll(OF_STEP), (found): [number, Recorded] => {
        const [, step, answeredCandles, answeredDigest, candles, digest, which, locator] = found;
        const sums = {
          candles: Number(candles) - Number(answeredCandles),
          digest: modulo(BigInt(`0x${digest}`) - BigInt(`0x${answeredDigest}`)),
          locator: locator === undefined ? 0n : BigInt(`0x${locator}`),
        };
        return [Number(step), { sums, hasSlot: which === 'the slot', hasLocator: locator !== undefined }];
      }),
    ),
  );
}

function isDoubted({ kind, detail }: Evidence): boolean {
  return kind === 'mended' && [UNLIKE_TOLD, OUTSIDE].some((text) => detail?.startsWith(text));
}

function ofRow({ candles }: { candles: number }, isOne: boolean, slots: number): string {
  if (isOne && candles < 0) return 'a candle that an answer contains is missing';
  if (isOne && candles > 0) return 'a candle is stored that no answer contains';
  if (isOne) return 'the stored candle differs from the answer';
  const count =
    candles === 0 ? '' : `, ${formatCounted(Math.abs(candles), 'candle')} ${candles < 0 ? 'too few' : 'too many'}`;
  return `candles differ from the answer in some of ${formatCounted(slots, 'slot')}${count}`;
}

function judgeSeries(
  series: SeriesRow,
  evidence: readonly Evidence[],
  account: Account,
  { report, reportOfSeries, anew }: Findings,
): void {
  const { all, final, inEmpty, outside } = account.stored;
  const width = INTERVAL_MS[series.interval];
  const slots = (spans: readonly Span[]) => normalize(spans.map(({ from, to }) => ({ from, to: to + width })));
  if (final.candles !== series.coveredCandles)
    report(
      `${formatCounted(final.candles, 'candle')} inside coverage, but the series records ${series.coveredCandles}`,
      [],
    );
  const mended = repairedDifferences(evidence);
  const byRows = account.rows
    .filter(({ row, isPartlyGone }) => row > anew && !isPartlyGone)
    .map(({ row, difference }) => minus(difference, mended.get(evidence[row]!.number)?.sums ?? NOTHING))
    .reduce(plus, NOTHING);
  const rest = minus(all, { candles: series.candles, digest: series.digest, locator: all.locator });
  if (rest.candles !== 0 || rest.digest !== 0n) {
    // A difference that the steps do not explain lies where no step reports anything.
    const isExplained = rest.candles === byRows.candles && rest.digest === byRows.digest;
    const text = `together, ${formatCounted(all.candles, 'stored candle')} do not match the digest of the series`;
    if (isExplained) report(text, []);
    else if (outside.length === 0) reportOfSeries(text);
    else report(`${text}, and candles outside coverage may differ too`, slots(outside));
  }
  const finalByEvidence = finalBy(account.steps, account.segments);
  const extra = subtract(series.covered, finalByEvidence);
  const lacking = intersect(subtract(finalByEvidence, series.covered), POSSIBLE);
  if (extra.length > 0) report(`${where(extra)}: covered, but no answer contains it`, extra);
  if (lacking.length > 0) report(`${where(lacking)}: an answer contains it, but it is not covered`, lacking);
  const notCovered = subtract(series.emptyOnce, series.covered);
  if (notCovered.length > 0) report(`${where(notCovered)}: known to be empty, but not covered`, notCovered);
  if (inEmpty.length > 0) report(`${where(slots(inEmpty))}: candles where slots are known to be empty`, slots(inEmpty));
}

function judgeShape({ series, account, odd }: Stored, now: Instant, { report, reportOfSeries }: Findings): void {
  const { covered, interval } = series;
  const width = INTERVAL_MS[interval];
  const bounded = covered.every((span) => Number.isFinite(span.from) && Number.isFinite(span.to));
  const slots = bounded ? countSlots(covered, interval) : Number.POSITIVE_INFINITY;
  const { candles } = account.stored.final;
  if (candles > slots) report(`${formatCounted(candles, 'candle')} for ${slots} covered slots`, []);
  const latest = Math.ceil((now + FUTURE_TOLERANCE_MS) / width) * width;
  const ahead = intersect(covered, [{ from: latest, to: Number.POSITIVE_INFINITY }]);
  if (!bounded) reportOfSeries('coverage has an open end');
  else if (ahead.length > 0) report(`${where(ahead)}: coverage reaches into the future`, ahead);
  if (series.offGrid.length > 0)
    report(`${where(series.offGrid)}: coverage is off the ${interval} grid`, series.offGrid);
  const reportOdd = (times: readonly Instant[], what: string) => {
    if (times.length === 0) return;
    const at = slotsAt([...new Set(times.map((time) => Math.floor(time / width) * width))], width);
    report(`${where(at)}: ${formatCounted(times.length, 'candle')} ${what}`, at);
  };
  reportOdd(odd.offGrid, `off the ${interval} grid`);
  reportOdd(odd.impossible, 'with impossible values (high below low, negative, not finite)');
  reportOdd(odd.future, 'in the future');
}
