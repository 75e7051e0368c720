/** What is wrong with a series, and where, given what its steps told and what is stored. Pure. */
import type { Instant } from '../../clock.ts';
import { countSlots } from '../../core/chunk.ts';
import { formatCounted, formatInstant } from '../../core/format.ts';
import { INTERVAL_MS } from '../../core/interval.ts';
import { contains, normalize, type Span, type Spans, subtract } from '../../core/span.ts';
import type { Account, RowDifference } from './account.ts';
import { brokenLinks } from './chain.ts';
import { isNothing, minus, modulo, NOTHING, placeOf, plus, type Sums } from './modulo.ts';
import type { Evidence, SeriesRow } from './read-series.ts';
import { finalBy, isWholeRow, makesFinal } from './steps.ts';

export type Judgement = {
  /** One sentence each. */
  readonly differences: readonly string[];
  /** What differed before it was mended: known, and no difference any more. */
  readonly notes: readonly string[];
  /** The slots that the differences are about, where the data tell; all that may be wrong where they do not. */
  readonly stretches: Spans;
};

/** The clock of the upstream may be ahead of ours by this much. */
export const FUTURE_TOLERANCE_MS = 10 * 60_000;
/** What `ops.uncover` says of what it found: of steps, of one step, of candles outside coverage. */
const UNLIKE_TOLD = 'what was found differs from what was told:';
const OF_STEP = /step (\d+) told (\d+) candles \(digest ([0-9a-f]{16})\), found were (\d+) \(digest ([0-9a-f]{16})\)/g;
const OUTSIDE = 'outside coverage, candles did not add up';
const ALL_TIME: Span = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };

export function judge(series: SeriesRow, evidence: readonly Evidence[], account: Account, now: Instant): Judgement {
  const differences: string[] = [];
  const notes: string[] = [];
  const stretches: Span[] = [];
  const say = (text: string, at: Spans) => {
    differences.push(text);
    stretches.push(...at);
  };
  judgeRows(series, evidence, account, { say, note: (text) => notes.push(text) });
  for (const { text, at } of account.revisions) say(`${where([at])}: ${text}`, [at]);
  judgeChain(series, evidence, account, { say, note: (text) => notes.push(text) });
  judgeSeries(series, evidence, account, say);
  judgeShape(series, evidence, account, now, say);
  if (account.stored.left > 0)
    notes.push(`${formatCounted(account.stored.left, 'candle')} that retention has yet to remove`);
  return { differences, notes, stretches: normalize(stretches) };
}

type Known = Pick<Sums, 'candles' | 'digest'>;
type Say = (text: string, at: Spans) => void;
type Verdicts = { readonly say: Say; readonly note: (text: string) => void };

function judgeRows(series: SeriesRow, evidence: readonly Evidence[], account: Account, { say, note }: Verdicts): void {
  const width = INTERVAL_MS[series.interval];
  const mendedAfter = (row: number) =>
    normalize(account.steps.filter((step) => step.kind === 'mended' && step.row > row).flatMap((step) => step.slots));
  const recorded = evidence.filter(isDoubted);
  for (const { number, slots, detail } of recorded)
    note(`${where(slots)}: mended by step ${number}; before that, ${detail}`);
  const foundByMending = differencesMended(evidence);
  /** Is it all of what the mendings found to be different? What else differs was changed after them. */
  const wasFound = ({ candles, digest }: Known, rows: readonly number[]) => {
    const found = rows.flatMap((row) => foundByMending.get(evidence[row]!.number) ?? []);
    return (
      candles === found.reduce((sum, one) => sum + one.candles, 0) &&
      digest === modulo(found.reduce((sum, one) => sum + one.digest, 0n))
    );
  };
  const judgeRow = ({ row, difference }: Pick<RowDifference, 'row' | 'difference'>, rows: readonly number[]) => {
    const slots = normalize(rows.flatMap((one) => evidence[one]!.slots));
    const place = placeOf(difference);
    const slot = place === null ? null : { from: place * width, to: (place + 1) * width };
    const isOne = slot !== null && contains(slots, slot.from);
    const suspect = isOne ? [slot] : slots;
    const left = subtract(suspect, mendedAfter(row));
    const step = evidence[row]!.number;
    if (left.length === 0) {
      if (!wasFound(difference, rows))
        say(`${where(suspect)}: what is kept of step ${step} was changed after it was mended`, suspect);
    } else say(`${where(left)}: ${ofRow(difference, isOne, countSlots(left, series.interval))} (step ${step})`, left);
  };
  let pool = NOTHING;
  const gone: number[] = [];
  for (const one of account.rows) {
    if (!one.isPartlyGone) judgeRow(one, [one.row]);
    else {
      // Of these rows only the sum is known, together with what retention found when it removed the rest.
      const isRetention = evidence[one.row]!.kind === 'retention';
      pool = isRetention ? plus(pool, evidence[one.row]!) : plus(pool, one.difference);
      if (!isRetention) gone.push(one.row);
    }
  }
  if (isNothing(pool)) return;
  if (gone.length === 0) say('retention removed what no answer told', []);
  else judgeRow({ row: Math.max(...gone), difference: pool }, gone);
}

/** Of steps, by their number: what was found less what had been told, as mendings have recorded it. */
function differencesMended(evidence: readonly Evidence[]): ReadonlyMap<number, Known> {
  return new Map(
    evidence.filter(isDoubted).flatMap(({ detail }) =>
      Array.from(detail!.matchAll(OF_STEP), ([, step, told, toldDigest, found, foundDigest]): [number, Known] => [
        Number(step),
        {
          candles: Number(found) - Number(told),
          digest: modulo(BigInt(`0x${foundDigest}`) - BigInt(`0x${toldDigest}`)),
        },
      ]),
    ),
  );
}

function isDoubted({ kind, detail }: Evidence): boolean {
  return kind === 'mended' && [UNLIKE_TOLD, OUTSIDE].some((text) => detail?.startsWith(text));
}

function ofRow({ candles }: { candles: number }, isOne: boolean, slots: number): string {
  if (isOne && candles < 0) return 'a candle is missing that an answer told';
  if (isOne && candles > 0) return 'there is a candle that no answer told';
  if (isOne) return 'the candle is not the one that the answer told';
  const count =
    candles === 0 ? '' : `, ${formatCounted(Math.abs(candles), 'candle')} ${candles < 0 ? 'too few' : 'too many'}`;
  return `candles differ from what the answer told in some of ${formatCounted(slots, 'slot')}${count}`;
}

function judgeChain(series: SeriesRow, evidence: readonly Evidence[], account: Account, { say, note }: Verdicts): void {
  const newest = evidence.at(-1);
  const counted = newest === undefined ? 0 : newest.number + (newest.stepSeconds?.length ?? 1) - 1;
  if (series.steps !== counted) {
    const left = counted === 0 ? 'all evidence is gone' : `evidence ends with step ${counted}`;
    say(`${left}, but ${formatCounted(series.steps, 'step')} ${series.steps === 1 ? 'was' : 'were'} recorded`, []);
  }
  if ((series.link ?? null) !== (newest?.link ?? null))
    say('the series does not end its chain with the newest step of evidence (their links differ)', []);
  // Who mends the whole series begins its evidence anew.
  const anew = evidence.findLastIndex(
    (row, i) =>
      row.kind === 'mended' &&
      subtract(normalize(evidence.slice(0, i).flatMap((e) => e.slots)), row.slots).length === 0,
  );
  const unknown = new Set(account.rows.map(({ row }) => row));
  const broken = new Set(brokenLinks(series, evidence, account, unknown));
  let expected = 1;
  for (const [i, row] of evidence.entries()) {
    const wrong = [
      row.number !== expected && `step ${expected} of the evidence is missing`,
      broken.has(i) && `step ${row.number} of the evidence is not linked to the step before it`,
    ].filter((text) => text !== false);
    for (const text of wrong) {
      if (i <= anew) note(`${text}; mended since`);
      else say(text, row.slots);
    }
    expected = row.number + (row.stepSeconds?.length ?? 1);
  }
  let name: string | null = null;
  for (const { kind, detail, number } of evidence) {
    if (kind !== 'renamed') continue;
    const [before, after] = (detail ?? '').split(' ');
    if (name !== null && before !== name) say(`step ${number} renames ${before}, but the coin was ${name}`, []);
    name = after ?? null;
  }
  if (name !== null && name !== series.coinId)
    say(`the coin is ${series.coinId}, but evidence ends with ${name}`, [ALL_TIME]);
}

function judgeSeries(series: SeriesRow, evidence: readonly Evidence[], account: Account, say: Say): void {
  const { all, final, inEmpty, outside } = account.stored;
  if (final.candles !== series.coveredCandles)
    say(`${formatCounted(final.candles, 'candle')} inside coverage, but ${series.coveredCandles} were recorded`, []);
  const mended = differencesMended(evidence);
  const byRows = account.rows
    .filter(({ isPartlyGone }) => !isPartlyGone)
    .map(({ row, difference }) => minus(difference, { ...NOTHING, ...mended.get(evidence[row]!.number) }))
    .reduce(plus, NOTHING);
  const rest = minus(all, { candles: series.candles, digest: series.digest, locator: all.locator });
  if (rest.candles !== 0 || rest.digest !== 0n) {
    // What the steps do not explain is where no step tells anything.
    const isExplained = rest.candles === byRows.candles && rest.digest === byRows.digest;
    const width = INTERVAL_MS[series.interval];
    const places = isExplained ? [] : normalize(outside.map(({ from, to }) => ({ from, to: to + width })));
    const where = isExplained || outside.length === 0 ? '' : ', and candles outside coverage may be concerned';
    say(
      `${formatCounted(all.candles, 'stored candle')}: they do not add up to the digest of the series${where}`,
      places,
    );
  }
  const final2 = finalBy(account.steps, account.segments);
  const extra = subtract(series.covered, final2);
  const lacking = subtract(final2, series.covered);
  if (extra.length > 0) say(`${where(extra)}: covered, but no answer told it`, extra);
  if (lacking.length > 0) say(`${where(lacking)}: an answer told it, but it is not covered`, lacking);
  const notCovered = subtract(series.emptyOnce, series.covered);
  if (notCovered.length > 0) say(`${where(notCovered)}: known to be empty, but not covered`, notCovered);
  if (inEmpty > 0) say(`${formatCounted(inEmpty, 'candle')} where the slot is known to be empty`, series.emptyOnce);
}

function judgeShape(
  series: SeriesRow,
  evidence: readonly Evidence[],
  { stored }: Account,
  now: Instant,
  say: Say,
): void {
  const { covered, interval } = series;
  const counted = (candles: number) => formatCounted(candles, 'candle');
  const bounded = covered.every((span) => Number.isFinite(span.from) && Number.isFinite(span.to));
  const slots = bounded ? countSlots(covered, interval) : Number.POSITIVE_INFINITY;
  if (stored.final.candles > slots) say(`${counted(stored.final.candles)} for ${slots} covered slots`, []);
  if (!bounded) say('coverage has an open end', [ALL_TIME]);
  else if ((covered.at(-1)?.to ?? 0) > now + FUTURE_TOLERANCE_MS) say('coverage reaches into the future', []);
  if (!series.isOnGrid) say(`coverage is off the ${interval} grid`, [ALL_TIME]);
  if (stored.offGrid > 0) say(`${counted(stored.offGrid)} off the ${interval} grid`, covered);
  if (stored.impossible > 0)
    say(`${counted(stored.impossible)} that cannot be true (high below low, negative, not finite)`, []);
  if (stored.future > 0) say(`${counted(stored.future)} from the future`, []);
  let before = Number.NEGATIVE_INFINITY;
  for (const row of evidence) {
    const { number, knownAt, slots: told } = row;
    if (!row.isOnGrid || !isWholeRow(row, INTERVAL_MS[interval]))
      say(`step ${number} of the evidence has slots or times that no step has`, told);
    if (knownAt < before) say(`step ${number} of the evidence is older than the step before it`, []);
    before = knownAt;
    if (makesFinal(row) && told.length === 0) say(`step ${number} of the evidence tells nothing`, []);
  }
}

/** `2024-01-05 00:00Z`, or the first and the last of several. */
function where(spans: Spans): string {
  const [first, last] = [spans[0], spans.at(-1)];
  if (first === undefined || last === undefined) return 'nowhere';
  const text = (at: Instant) => (Number.isFinite(at) ? formatInstant(at) : 'ever');
  return `${text(first.from)} to ${text(last.to)}`;
}
