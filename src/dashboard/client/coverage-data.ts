/**
 * The data of the map that the server has sent. The script requests more than is visible, one map to each side and one page of rows above
 * and below, so that moving needs no request. It requests the next part before the known part ends, and draws the known part until then.
 */
import { type Box, type Layout, plotWidth, type View, visibleRows } from './coverage-view.ts';

export type State = {
  readonly look: string;
  readonly text: string;
  /** Whether a backfill would request it. */
  readonly isFetchable: boolean;
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
  /** Number of confirmed empty slots that no stretch shows, because reading their places would take too long. */
  readonly confirmedEmptyElsewhere: number;
};

/** The answer of `src/dashboard/map/coverage-data.ts`. */
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
  /** The newest answer. Null before the first one. */
  readonly answer: () => Answer | null;
  /** A row that the server has sent since the filter changed. Its stretches may belong to another time than the visible one. */
  readonly rowOf: (row: number) => Row | undefined;
  /** The frame that the numbers in its stretches refer to. */
  readonly frameOf: (row: number) => Frame | undefined;
  /** The states of the row in this time. Null when the server has not sent all of that time. */
  readonly statesIn: (row: number, from: number, to: number) => readonly State[] | null;
  /** Requests what this view needs and the script does not have. */
  readonly need: (view: View, layout: Layout) => void;
  /** Requests the rows of a box that are not known yet, so that the selection can describe them; of very many rows only the first ones. */
  readonly loadRows: (box: Box) => Promise<void>;
  /** Call it when something has changed: requests the data again. */
  readonly renew: (view: View, layout: Layout) => void;
};

const MOST_ROWS = 400;
const MAPS_BESIDE = 1;
/** The known data is good enough if its steps and the pixels differ at most by this factor. Otherwise the script requests it again. */
const STEP_RATIO = 1.6;
const SETTLE_MS = 80;
/** Number of rows that are requested for the box of an address. */
const MOST_ASKED = 2_000;
const STEPS_ASKED = 4_000;
const RETRY_MS = 4_000;
/** Number of rows that are kept, for a selection that reaches beyond the visible rows. */
const MOST_REMEMBERED = 20_000;

export function createMapData(filter: () => URLSearchParams, onChange: (problem: string | null) => void): MapData {
  let answer: Answer | null = null;
  let pending: Question | null = null;
  let next: Question | null = null;
  let timer: ReturnType<typeof setTimeout> | null = null;
  const remembered = new Map<number, KnownRow>();

  const keep = (received: Answer) => {
    if (remembered.size > MOST_REMEMBERED) remembered.clear();
    // Keeps the frame without the answer's rows, so that forgotten rows can be freed.
    const frame = { from: received.from, to: received.to, step: received.step, states: received.states };
    for (const [i, row] of received.rows.entries()) remembered.set(received.row + i, { row, of: frame });
  };
  const load = async (question: Question) => {
    const mine = question;
    pending = mine;
    try {
      const received = await answerOf(filter(), question);
      // A later request has been sent meanwhile, and its answer counts.
      if (pending !== mine) return;
      keep(received);
      answer = received;
      onChange(null);
    } catch (error) {
      if (pending !== mine) return;
      pending = null;
      onChange(
        `The map could not load: ${error instanceof Error ? error.message : String(error)}. It retries automatically.`,
      );
      later(question, RETRY_MS);
    }
  };
  // The newest question replaces the waiting one, but does not restart the timer, because the visitor may move without a stop.
  const later = (question: Question, ms: number) => {
    next = question;
    timer ??= setTimeout(() => {
      timer = null;
      if (next !== null) void load(next);
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
      if (pending !== null && isEnough(pending, view, layout)) return;
      const question = questionOf(view, layout);
      // Sends the first request at once. While the visitor moves, one request serves several moves.
      if (pending === null && timer === null) void load(question);
      else later(question, SETTLE_MS);
    },
    async loadRows({ row, endRow, from, to }) {
      const end = Math.min(endRow, row + MOST_ASKED);
      const step = Math.max(1, Math.floor((to - from) / STEPS_ASKED));
      let at = row;
      while (at < end) {
        // The visible part of a known row is loaded already.
        if (remembered.has(at)) {
          at++;
          continue;
        }
        let rows = 1;
        while (rows < MOST_ROWS && at + rows < end && !remembered.has(at + rows)) rows++;
        // Without an answer, the text about the box says how many of its rows are left out.
        const received = await answerOf(filter(), { row: at, rows, from, to, step }).catch(() => null);
        if (received === null) return;
        keep(received);
        at += rows;
      }
    },
    renew: (view, layout) => void load(questionOf(view, layout)),
  };
}

async function answerOf(filter: URLSearchParams, question: Question): Promise<Answer> {
  const response = await fetch(`/ui/coverage/data?${queryOf(filter, question)}`, {
    headers: { Accept: 'application/json' },
  });
  if (!response.ok || response.redirected) throw new Error(`the server answered ${response.status}`);
  return (await response.json()) as Answer;
}

export type Frame = Pick<Answer, 'from' | 'to' | 'step' | 'states'>;
type KnownRow = { readonly row: Row; readonly of: Frame };

/** The states of all slots that lie in the span or overlap it. Null when the frame does not contain the span. */
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

/** The time of the stretch at this place, without the parts of slots that rounding to steps has added. */
export function spanOf(
  { stretches, widthSeconds: wide }: Row,
  { from, step }: Frame,
  place: number,
): readonly [number, number] {
  const [begin, end] = [from + stretches[place + 1]! * step, from + stretches[place + 2]! * step];
  const first = Math.min(begin + step, Math.ceil(begin / wide) * wide);
  const last = Math.max(end - step, Math.floor(end / wide) * wide);
  // A stretch that ends now ends within a slot.
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

/** One step per pixel. */
function stepOf(view: View, layout: Layout): number {
  return Math.max(1, Math.floor((view.to - view.from) / plotWidth(layout)));
}

/** Whether it contains the visible part, and a quarter of a map and of a page around it. */
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
