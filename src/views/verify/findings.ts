/** Collects what is wrong with a series: the sentences, the slots, and what a repair has settled already. Pure. */
import type { Instant } from '../../clock.ts';
import { formatInstant } from '../../core/format.ts';
import { normalize, type Span, type Spans, subtract } from '../../core/span.ts';
import type { Evidence } from './read-series.ts';

export type Judgement = {
  /** One sentence each. */
  readonly differences: readonly string[];
  /** Differences from before a repair. They are known, and do not count as differences any more. */
  readonly notes: readonly string[];
  /** The slots of the differences if the data show them; otherwise all slots that may be wrong. */
  readonly stretches: Spans;
  /** The spans that `ops.uncover` must take out of coverage so that no difference is left; all time: the whole series. */
  readonly repairs: Spans;
  /** Statements that remove rows at times which neither `ops.uncover` nor a backfill accepts. */
  readonly removals: readonly string[];
};

export const ALL_TIME: Span = { from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY };

export type Findings = {
  /** The index in the evidence of the newest repair of the whole series after which nothing older was changed, or −1. Nothing older is judged. */
  readonly anew: number;
  note(text: string): void;
  /** Reports a difference in these slots. If there are none, other differences show the slots. */
  report(text: string, at: Spans): void;
  /** Reports a difference that a statement removes, not a repair. */
  reportRemovable(text: string, statement: string): void;
  /** Reports a difference in the evidence itself, which no repair of a stretch corrects. `step`: of the evidence; absent: its end. */
  reportOfSeries(text: string, step?: number): void;
  /** Reports a difference in the records of a step, unless a later repair of these slots has settled it. */
  reportOfStep(step: number, text: string, at: Spans): void;
  /** The slots that repairs after this step have settled: their records from before the repair were not changed since. */
  settledAfter(step: number): Spans;
  close(): Judgement;
};

/** `unchanged`: the steps of the repairs before which no record was changed since. */
export function collectFindings(evidence: readonly Evidence[], unchanged: ReadonlySet<number>): Findings {
  const differences: string[] = [];
  const notes: string[] = [];
  const removals: string[] = [];
  const stretches: Span[] = [];
  let isWhole = false;
  let isOldBroken = false;
  const repairSteps = evidence.filter(({ kind, number }) => kind === 'mended' && unchanged.has(number));
  const anew = evidence.findLastIndex((row) => repairSteps.includes(row) && isOfWholeSeries(row));
  const begin = evidence[anew]?.number ?? Number.NEGATIVE_INFINITY;
  const report = (text: string, at: Spans) => {
    differences.push(text);
    stretches.push(...at);
  };
  const isOld = (step: number) => {
    if (step >= begin) return false;
    isOldBroken = true;
    return true;
  };
  const settledAfter = (step: number) =>
    normalize(repairSteps.filter(({ number }) => number > step).flatMap(({ slots }) => slots));
  return {
    anew,
    report,
    settledAfter,
    note: (text) => notes.push(text),
    reportRemovable(text, statement) {
      differences.push(text);
      removals.push(statement);
    },
    reportOfSeries(text, step) {
      if (step !== undefined && isOld(step)) return;
      differences.push(text);
      isWhole = true;
    },
    reportOfStep(step, text, at) {
      if (isOld(step)) return;
      const left = subtract(normalize(at), settledAfter(step));
      if (left.length > 0) report(`${where(left)}: ${text}`, left);
      else notes.push(`${where(at)}: before a repair, ${text}`);
    },
    close() {
      if (isOldBroken)
        notes.push(
          `step ${begin} mended the whole series. At that time, older evidence or revisions were missing or changed, so their contents are not proved`,
        );
      const at = normalize(stretches);
      const isNowhere = differences.length > removals.length && at.length === 0;
      return { differences, notes, stretches: at, repairs: isWhole || isNowhere ? [ALL_TIME] : openEnds(at), removals };
    },
  };
}

/** No command accepts an instant outside these years, so there the stretch becomes open. */
const WRITABLE: Span = { from: Date.parse('0001-01-01T00:00:00Z'), to: Date.UTC(10_000, 0, 1) };

function openEnds(spans: Spans): Span[] {
  const open = ({ from, to }: Span): Span => ({
    from: from < WRITABLE.from ? Number.NEGATIVE_INFINITY : Math.min(from, WRITABLE.to),
    to: to > WRITABLE.to ? Number.POSITIVE_INFINITY : Math.max(to, WRITABLE.from),
  });
  return normalize(spans.map(open));
}

function isOfWholeSeries({ detail }: Evidence): boolean {
  return detail !== null && /kept before: \d+ rows of evidence/.test(detail);
}

/** The last date that JavaScript can represent. Postgres has dates 18,000 years later. */
export const LAST_DATE = 8.64e15;

/** `2024-01-05 00:00Z to 2024-01-06 00:00Z`; for several stretches, the first and the last instant, and their number. */
export function where(spans: Spans): string {
  const [first, last] = [spans[0], spans.at(-1)];
  if (first === undefined || last === undefined) return 'nowhere';
  const text = (at: Instant) => (Math.abs(at) <= LAST_DATE ? formatInstant(at) : 'ever');
  const several = spans.length > 1 ? ` (${spans.length} spans)` : '';
  return `${text(first.from)} to ${text(last.to)}${several}`;
}
