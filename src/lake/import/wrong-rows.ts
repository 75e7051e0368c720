/** Rows that cannot be stored: how many there are for each reason, and the first of them. */

/** At most this many are named. */
export const MOST_NAMED = 20;

type WrongRow = {
  /** The file's name to show to users. */
  readonly file: string;
  /** From 1. In a text with a header, the header is record 1. */
  readonly record: number;
  readonly reason: string;
};

export type WrongRows = {
  add(file: string, record: number, reason: string, value?: unknown): void;
  /** Adds several rows for one reason. Only the first ones are named. */
  addMany(count: number, reason: string, named: readonly Omit<WrongRow, 'reason'>[]): void;
  readonly count: number;
  readonly first: readonly WrongRow[];
  /** The most frequent first. */
  reasons(): readonly { readonly reason: string; readonly rows: number }[];
};

export function createWrongRows(): WrongRows {
  const counts = new Map<string, number>();
  const first: WrongRow[] = [];
  let count = 0;
  const addCount = (reason: string, more: number) => {
    count += more;
    counts.set(reason, (counts.get(reason) ?? 0) + more);
  };
  return {
    add: (file, record, reason, value) => {
      addCount(reason, 1);
      if (first.length < MOST_NAMED) first.push({ file, record, reason: `${reason}${shown(value)}` });
    },
    addMany: (more, reason, named) => {
      if (more > 0) addCount(reason, more);
      first.push(...named.slice(0, MOST_NAMED - first.length).map((row) => ({ ...row, reason })));
    },
    get count() {
      return count;
    },
    first,
    reasons: () =>
      [...counts]
        .map(([reason, rows]) => ({ reason, rows }))
        .sort((a, b) => b.rows - a.rows || (a.reason < b.reason ? -1 : 1)),
  };
}

const LONGEST = 60;

function shown(value: unknown): string {
  if (value === undefined) return '';
  const text = typeof value === 'bigint' || typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? '');
  return `: ${text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text}`;
}
