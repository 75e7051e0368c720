/**
 * What the server has told of the map. It is asked for more than is shown, one map to each side and one page of rows above and below, so
 * that moving needs no request; the next part is asked for before what is known ends. Until it is there, what is known is drawn.
 */
import { type Box, type Layout, plotWidth, type View, visibleRows } from './coverage-view.ts';

export type State = {
  readonly look: string;
  readonly text: string;
  /** A backfill would ask for it. */
  readonly canBeAsked: boolean;
};

export type Row = {
  readonly seriesId: number;
  readonly coinId: string;
  readonly symbol: string;
  readonly name: string;
  readonly rank: number | null;
  readonly interval: string;
  readonly quote: string;
  readonly widthSeconds: number;
  readonly tier: string | null;
  readonly stretches: readonly number[];
  /** Confirmed empty slots that no stretch shows: it would take too long to read where they are. */
  readonly toldTwiceElsewhere: number;
};

/** As `src/dashboard/map/coverage-data.ts` answers. */
export type Answer = {
  readonly total: number;
  readonly row: number;
  readonly from: number;
  readonly to: number;
  readonly step: number;
  readonly now: number;
  readonly states: readonly State[];
  readonly rows: readonly Row[];
};

export type MapData = {
  /** The newest answer; null before the first one. */
  readonly answer: () => Answer | null;
  /** A row that was told at some time since the filter; its stretches may be of another time than is shown. */
  readonly rowOf: (row: number) => Row | undefined;
  /** What the numbers in its stretches count from. */
  readonly frameOf: (row: number) => Frame | undefined;
  /** What the row is in this time; null: it was never told of all of that time. */
  readonly statesIn: (row: number, from: number, to: number) => readonly State[] | null;
  /** Asks for what this view needs and is not known. */
  readonly need: (view: View, layout: Layout) => void;
  /** Asks for the rows of a box that are not known, so that all of them can be told of; of many rows for the first ones only. */
  readonly remember: (box: Box) => Promise<void>;
  /** Something has changed: asks again. */
  readonly renew: (view: View, layout: Layout) => void;
};

const MOST_ROWS = 400;
const MAPS_BESIDE = 1;
/** What is known has as many steps as pixels within this factor; else it is asked for anew. */
const STEP_RATIO = 1.6;
const SETTLE_MS = 80;
/** Of a box of an address. */
const MOST_ASKED = 2_000;
const STEPS_ASKED = 4_000;
const RETRY_MS = 4_000;
/** Rows whose names are remembered, for a selection that reaches further than what is drawn. */
const MOST_REMEMBERED = 20_000;

export function createMapData(filter: () => URLSearchParams, onChange: (problem: string | null) => void): MapData {
  let answer: Answer | null = null;
  let asked: Question | null = null;
  let next: Question | null = null;
  let timer: ReturnType<typeof setTimeout> | null = null;
  const remembered = new Map<number, Told>();

  const keep = (told: Answer) => {
    if (remembered.size > MOST_REMEMBERED) remembered.clear();
    // Without its rows, so that those which are forgotten are free.
    const frame = { from: told.from, to: told.to, step: told.step, states: told.states };
    for (const [i, row] of told.rows.entries()) remembered.set(told.row + i, { row, of: frame });
  };
  const ask = async (question: Question) => {
    const mine = question;
    asked = mine;
    try {
      const told = await answerOf(filter(), question);
      // A later question has been asked meanwhile: its answer is the one that counts.
      if (asked !== mine) return;
      keep(told);
      answer = told;
      onChange(null);
    } catch (error) {
      if (asked !== mine) return;
      asked = null;
      onChange(`The map could not be read: ${error instanceof Error ? error.message : String(error)}. It tries again.`);
      later(question, RETRY_MS);
    }
  };
  // The newest question counts, but none puts off the one before it: somebody may move without a stop.
  const later = (question: Question, ms: number) => {
    next = question;
    timer ??= setTimeout(() => {
      timer = null;
      if (next !== null) void ask(next);
    }, ms);
  };

  return {
    answer: () => answer,
    rowOf: (row) => remembered.get(row)?.row,
    frameOf: (row) => remembered.get(row)?.of,
    statesIn(row, from, to) {
      const found = remembered.get(row);
      return found === undefined ? null : statesOf(found.row, found.of, from, to);
    },
    need(view, layout) {
      if (asked !== null && isEnough(asked, view, layout)) return;
      const question = questionOf(view, layout);
      // The first one at once; while somebody moves, one for several moves.
      if (asked === null && timer === null) void ask(question);
      else later(question, SETTLE_MS);
    },
    async remember({ row, endRow, from, to }) {
      const end = Math.min(endRow, row + MOST_ASKED);
      const step = Math.max(1, Math.floor((to - from) / STEPS_ASKED));
      let at = row;
      while (at < end) {
        // Of those that are drawn, what is drawn is known.
        if (remembered.has(at)) {
          at++;
          continue;
        }
        let rows = 1;
        while (rows < MOST_ROWS && at + rows < end && !remembered.has(at + rows)) rows++;
        // Without an answer, what is told of the box says how many of its rows are left out.
        const told = await answerOf(filter(), { row: at, rows, from, to, step }).catch(() => null);
        if (told === null) return;
        keep(told);
        at += rows;
      }
    },
    renew: (view, layout) => void ask(questionOf(view, layout)),
  };
}

async function answerOf(filter: URLSearchParams, question: Question): Promise<Answer> {
  const response = await fetch(`/ui/coverage/data?${queryOf(filter, question)}`, {
    headers: { Accept: 'application/json' },
  });
  if (!response.ok || response.redirected) throw new Error(`the answer is ${response.status}`);
  return (await response.json()) as Answer;
}

export type Frame = Pick<Answer, 'from' | 'to' | 'step' | 'states'>;
type Told = { readonly row: Row; readonly of: Frame };

/** Of the whole slots that lie in the span, or reach into it. Null: the frame does not hold it. */
export function statesOf(row: Row, frame: Frame, spanFrom: number, spanTo: number): readonly State[] | null {
  if (spanFrom < frame.from || spanTo > frame.to) return null;
  const { widthSeconds: wide, stretches } = row;
  const [from, to] = [Math.floor(spanFrom / wide) * wide, Math.ceil(spanTo / wide) * wide];
  const found = new Set<State>();
  for (let i = 0; i < stretches.length; i += 3) {
    const [begin, end] = spanOf(row, frame, i);
    if (begin < to && end > from) found.add(frame.states[stretches[i]!]!);
  }
  return [...found];
}

/** The time of the stretch at this place: without the parts of slots by which it was widened to steps. */
export function spanOf(
  { stretches, widthSeconds: wide }: Row,
  { from, step }: Frame,
  place: number,
): readonly [number, number] {
  const [begin, end] = [from + stretches[place + 1]! * step, from + stretches[place + 2]! * step];
  const first = Math.min(begin + step, Math.ceil(begin / wide) * wide);
  const last = Math.max(end - step, Math.floor(end / wide) * wide);
  // What ends now ends within a slot.
  if (step >= wide || first >= last) return [begin, end];
  return [first - begin < step ? first : begin, end - last < step ? last : end];
}

type Question = {
  readonly row: number;
  readonly rows: number;
  readonly from: number;
  readonly to: number;
  readonly step: number;
};

function questionOf(view: View, layout: Layout): Question {
  const span = view.to - view.from;
  const page = Math.ceil(visibleRows(layout));
  const row = Math.max(0, Math.floor(view.top) - page);
  return {
    row,
    rows: Math.min(MOST_ROWS, Math.ceil(view.top) + 2 * page + 1 - row),
    from: Math.max(0, view.from - MAPS_BESIDE * span),
    to: view.to + MAPS_BESIDE * span,
    step: stepOf(view, layout),
  };
}

/** A step a pixel. */
function stepOf(view: View, layout: Layout): number {
  return Math.max(1, Math.floor((view.to - view.from) / plotWidth(layout)));
}

/** Does it tell what is shown, and a quarter of a map and of a page around it? */
function isEnough({ row, rows, from, to, step }: Question, view: View, layout: Layout): boolean {
  const ratio = step / stepOf(view, layout);
  if (ratio > STEP_RATIO || ratio < 1 / STEP_RATIO) return false;
  const margin = (view.to - view.from) / 4;
  if (from > Math.max(0, view.from - margin) || to < view.to + margin) return false;
  const above = visibleRows(layout) / 4;
  return row <= Math.max(0, Math.floor(view.top - above)) && row + rows >= view.top + visibleRows(layout) + above;
}

function queryOf(filter: URLSearchParams, { row, rows, from, to, step }: Question): string {
  const query = new URLSearchParams(filter);
  const iso = (seconds: number) => new Date(Math.round(seconds) * 1000).toISOString();
  for (const [name, value] of Object.entries({ row, rows, from: iso(from), to: iso(to), step }))
    query.set(name, String(value));
  return query.toString();
}
