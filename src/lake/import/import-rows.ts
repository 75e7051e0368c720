/** Takes the rows of a file, checks each like a row of an answer, and sends the right ones to Postgres. */
import { yieldToEventLoop } from '../../core/concurrency/yield-to-event-loop.ts';
import { impossibleTime, impossibleValues } from '../../core/possible-candle.ts';
import { createCandleEncoder } from '../../store/imported/encode-candles.ts';
import type { ImportTransaction } from '../../store/imported/import-transaction.ts';
import type { Columns, Role } from './columns.ts';
import { type ImportSeries, isAnother, type SeriesBook, type SeriesText } from './series-book.ts';
import type { RawRows } from './table/table.ts';
import { explainNoNumber, readAmount, readBoolean, readNumber, type TimeReader } from './values.ts';
import type { WrongRows } from './wrong-rows.ts';

/** Rows of one buffer. Postgres stores one buffer while the next one is filled. */
const ROWS_AT_ONCE = 8_192;

export type OpenedFile = {
  /** The name to show to users. */
  readonly name: string;
  /** Its index in the list of files. */
  readonly number: number;
  /** The index of each role among the columns that are read. */
  readonly columns: Columns;
  readonly isInstant: boolean;
  /** The values that are given for all rows. They count even if the file has columns for them, which may not contradict them. */
  readonly said: Partial<SeriesText>;
  /** The coin's name in the first row, once that row was read. */
  readonly label: { value?: unknown };
};

/** The number of right rows without a value, by column. */
export type MissingValues = Record<'open' | 'high' | 'low' | 'close' | 'volume' | 'market_cap', number>;

export type RowImporter = {
  take(file: OpenedFile, rows: RawRows): Promise<void>;
  /** Sends the remaining rows to Postgres. */
  finish(): Promise<void>;
  /** Number of rows that were sent to the staging table. */
  readonly staged: number;
  readonly taken: number;
  readonly missing: MissingValues;
};

export function createRowImporter(deps: {
  readonly book: SeriesBook;
  /** Null: rows are only checked. */
  readonly transaction: ImportTransaction | null;
  readonly times: TimeReader;
  readonly wrong: WrongRows;
  /** After a wrong row, nothing more is stored, and the rest is only checked. */
  readonly storesNothingIfWrong: boolean;
  readonly signal: AbortSignal;
  /** Called with the number of rows that were processed. */
  readonly onRows: (rows: number) => void;
}): RowImporter {
  const { book, transaction, wrong, signal } = deps;
  const candles = createCandleEncoder(ROWS_AT_ONCE);
  const others = createCandleEncoder(ROWS_AT_ONCE);
  const counts = { staged: 0, taken: 0 };
  const missing: MissingValues = { open: 0, high: 0, low: 0, close: 0, volume: 0, market_cap: 0 };
  const takePart = (file: OpenedFile, rows: RawRows, from: number, to: number) => {
    const names = createNames(file, rows);
    const rowOf = createRowReader(file, rows, { times: deps.times, missing });
    const isStoring = transaction !== null && !(deps.storesNothingIfWrong && wrong.count > 0);
    for (let i = from; i < to; i++) {
      const record = rows.first + i;
      const damaged = rows.wrong?.get(i);
      if (damaged !== undefined) {
        wrong.add(file.name, record, damaged);
        continue;
      }
      const series = names.find(book, i);
      const reason = typeof series === 'string' ? series : rowOf.read(i, series);
      if (reason !== null) {
        wrong.add(file.name, record, reason, rowOf.value);
        continue;
      }
      if (!isStoring) continue;
      const { before, seen, sum } = series as ImportSeries;
      const { at, open, high, low, close, volume, marketCap, isFinal } = rowOf;
      if (seen.isNew(at)) {
        candles.set(at, open, high, low, close, volume, marketCap);
        candles.hashInto(sum);
        candles.append(before.id, isFinal);
        (series as ImportSeries).added++;
      } else {
        others.set(at, open, high, low, close, volume, marketCap);
        others.appendStaged(before.id, isFinal, file.number, record);
        counts.staged++;
      }
    }
  };
  let pending = 0;
  const flush = async () => {
    signal.throwIfAborted();
    pending = 0;
    const [straight, staged] = [candles.take(), others.take()];
    if (straight !== null) await transaction!.copy('candles', straight);
    if (staged !== null) await transaction!.copy('staging', staged);
    await yieldToEventLoop();
  };
  return {
    missing,
    get staged() {
      return counts.staged;
    },
    get taken() {
      return counts.taken;
    },
    take: async (file, rows) => {
      await openSeries(book, file, rows);
      for (let from = 0; from < rows.rows; ) {
        const to = Math.min(rows.rows, from + ROWS_AT_ONCE - pending);
        takePart(file, rows, from, to);
        counts.taken += to - from;
        deps.onRows(to - from);
        pending += to - from;
        from = to;
        if (pending === ROWS_AT_ONCE) await flush();
      }
    },
    finish: flush,
  };
}

/** Opens the series of all rows of a batch; most batches have one. */
async function openSeries(book: SeriesBook, file: OpenedFile, rows: RawRows): Promise<void> {
  const names = createNames(file, rows);
  const unknown = new Map<string, SeriesText & { readonly where: string }>();
  for (let i = 0; i < rows.rows; i++) {
    // First: the rows after a damaged one would count as rows of its series, which nobody opens.
    if (rows.wrong?.has(i) || !names.changes(i)) continue;
    const text = names.textOf(i);
    if (book.find(text) === undefined)
      unknown.set(JSON.stringify(text), { ...text, where: `${file.name}, record ${rows.first + i}: ` });
  }
  if (unknown.size > 0) await book.open([...unknown.values()]);
}

/** Finds the series of each row of a batch. Rows of one series are adjacent, so most rows have the series of the row before. */
function createNames({ columns, said, label }: OpenedFile, rows: RawRows) {
  const of = (role: 'coin' | 'interval' | 'quote') =>
    said[role] === undefined && columns[role] !== undefined ? rows.columns[columns[role]]! : null;
  const [coins, intervals, quotes] = [of('coin'), of('interval'), of('quote')];
  // One coin that is given for a file of several coins would mix them up.
  const labels = said.coin !== undefined && columns.coin !== undefined ? rows.columns[columns.coin]! : null;
  const claims = (['interval', 'quote'] as const)
    .filter((role) => said[role] !== undefined && columns[role] !== undefined)
    .map((role) => ({ role, said: said[role]!, values: rows.columns[columns[role]!]!, right: undefined as unknown }));
  let last = -1;
  let found: ImportSeries | string = '';
  const text = (value: unknown) => (value === null || value === undefined ? '' : String(value).trim());
  const isSame = (i: number) =>
    (coins === null || coins[i] === coins[last]) &&
    (intervals === null || intervals[i] === intervals[last]) &&
    (quotes === null || quotes[i] === quotes[last]);
  const textOf = (i: number): SeriesText => ({
    coin: said.coin ?? text(coins?.[i]),
    interval: said.interval ?? text(intervals?.[i]),
    quote: said.quote ?? text(quotes?.[i]),
  });
  return {
    textOf,
    /** Whether this row may be of another series than the row of the last change. */
    changes: (i: number): boolean => {
      if (last !== -1 && isSame(i)) return false;
      last = i;
      return true;
    },
    find: (book: SeriesBook, i: number): ImportSeries | string => {
      if (labels !== null) label.value ??= labels[i];
      if (labels !== null && labels[i] !== label.value)
        return 'is of a different coin than other rows of its file, but --coin names one coin for all rows';
      for (const claim of claims) {
        const value = claim.values[i];
        if (value !== claim.right && isAnother(claim.role, text(value), claim.said))
          return `its ${claim.role} is not ${claim.said}, which --${claim.role} or its folder says`;
        claim.right = value;
      }
      if (last === -1 || !isSame(i)) {
        last = i;
        found = book.find(textOf(i)) ?? 'has no coin';
      }
      return found;
    },
  };
}

type Value = number | null;

/** Reads one row after the other into the same fields, because an object for each row would cost more than the row. */
function createRowReader(
  { columns, isInstant }: OpenedFile,
  rows: RawRows,
  { times, missing }: { readonly times: TimeReader; readonly missing: MissingValues },
) {
  const of = (role: Role) => (columns[role] === undefined ? null : rows.columns[columns[role]]!);
  const [time, open, high, low, close] = (['time', 'open', 'high', 'low', 'close'] as const).map(
    (role) => of(role)!,
  ) as [ArrayLike<unknown>, ArrayLike<unknown>, ArrayLike<unknown>, ArrayLike<unknown>, ArrayLike<unknown>];
  const [volume, marketCap, isFinal] = [of('volume'), of('market_cap'), of('is_final')];
  const row = {
    at: 0,
    open: null as Value,
    high: null as Value,
    low: null as Value,
    close: null as Value,
    volume: null as Value,
    marketCap: null as Value,
    isFinal: false,
    /** The value that made a row wrong; undefined when the reason says enough. */
    value: undefined as unknown,
    /** Null when the row is right; otherwise the reason why not. */
    read,
  };
  return row;

  function wrongNumber(i: number): string | null {
    const named = { open, high, low, close, volume, market_cap: marketCap };
    for (const [name, values] of Object.entries(named)) {
      if (values === null || readNumber(values[i]) !== undefined) continue;
      row.value = values[i];
      return `${name} ${explainNoNumber(values[i])}`;
    }
    return null;
  }

  function countMissing(): void {
    if (row.open === null) missing.open++;
    if (row.high === null) missing.high++;
    if (row.low === null) missing.low++;
    if (row.close === null) missing.close++;
    if (row.volume === null && volume !== null) missing.volume++;
    if (row.marketCap === null && marketCap !== null) missing.market_cap++;
  }

  function read(i: number, series: ImportSeries): string | null {
    row.value = undefined;
    row.at = times.read(time[i], isInstant);
    if (!(Math.abs(row.at) <= 8.64e15)) {
      row.value = time[i] ?? null;
      return 'time is not a valid time';
    }
    const when = impossibleTime(row.at, series.times);
    if (when !== null) {
      row.value = new Date(row.at).toISOString();
      return when;
    }
    const o = readNumber(open[i]);
    const h = readNumber(high[i]);
    const l = readNumber(low[i]);
    const c = readNumber(close[i]);
    const v = volume === null ? null : readAmount(volume[i]);
    const m = marketCap === null ? null : readAmount(marketCap[i]);
    if (o === undefined || h === undefined || l === undefined || c === undefined || v === undefined || m === undefined)
      return wrongNumber(i);
    const flag = isFinal === null ? null : readBoolean(isFinal[i]);
    if (flag === undefined) {
      row.value = isFinal![i];
      return 'is_final must be true or false';
    }
    row.open = o;
    row.high = h;
    row.low = l;
    row.close = c;
    row.volume = v;
    row.marketCap = m;
    row.isFinal = flag ?? row.at < series.finalUntil;
    const reason = impossibleValues(o, h, l, c, v, m);
    if (reason !== null) row.value = [o, h, l, c, v, m].map((one) => (Number.isFinite(one ?? 0) ? one : String(one)));
    else countMissing();
    return reason;
  }
}
