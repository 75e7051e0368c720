/**
 * Imports files of candles from elsewhere into tables of their own. One transaction stores all rows of all files, or none: an import that is killed
 * at any moment has changed nothing.
 */
import type { Instant } from '../../clock.ts';
import { sumAsBigint } from '../../core/candle-hash.ts';
import { TWO_ROWS_OF_A_SLOT } from '../../core/possible-candle.ts';
import type { Database } from '../../store/connection/connect.ts';
import { withLockUnlessHeld } from '../../store/connection/lock.ts';
import { type ImportTransaction, openImport } from '../../store/imported/import-transaction.ts';
import { IMPORT_LOCK } from '../../store/imported/imported-series.ts';
import {
  applyStaged,
  type Change,
  noteSeries,
  type OtherRow,
  readStaged,
  type Staged,
} from '../../store/imported/merge-staged.ts';
import { ImportRefused } from '../refused.ts';
import { createRowImporter, type MissingValues, type RowImporter } from './import-rows.ts';
import type { FileToImport } from './open-files.ts';
import { createSeriesBook, type ImportSeries, type SeriesBook } from './series-book.ts';
import { createTimeReader, type TimeForm, type TimeUnit } from './values.ts';
import { createWrongRows, MOST_NAMED, type WrongRows } from './wrong-rows.ts';

export type ImportOptions = {
  readonly database: Pick<Database, 'sql' | 'url' | 'watchdog'>;
  readonly files: readonly FileToImport[];
  readonly source: string;
  /** The unit of times that are numbers; null: their size shows it. */
  readonly timeUnit: TimeUnit | null;
  /** Replaces values of earlier imports that differ. */
  readonly replaces: boolean;
  /** Leaves out wrong rows. When false, one wrong row prevents the whole import. */
  readonly skipsWrong: boolean;
  /** Only checks the rows. */
  readonly isTrial: boolean;
  readonly now: Instant;
  readonly signal: AbortSignal;
  readonly onRows?: (rows: number) => void;
  /** Called before the commit. It rejects when the stored rows are not as expected. */
  readonly prove?: (transaction: ImportTransaction, book: SeriesBook) => Promise<void>;
};

type ImportedNow = {
  readonly coinId: string;
  readonly quote: string;
  readonly interval: string;
  readonly id: number;
};

export type Imported = {
  /** `stored`, even when all rows were there already; `checked`: it was a trial; `wrong`, `other`: nothing was stored. */
  readonly outcome: 'stored' | 'checked' | 'wrong' | 'other';
  readonly rows: number;
  readonly added: number;
  /** Rows that equal what was stored already. */
  readonly same: number;
  /** Rows that equal another row of this import. */
  readonly twice: number;
  readonly replaced: number;
  /** Candles that were not final when an earlier import stored them, and that have other values now. */
  readonly updated: number;
  /** The number of right rows without a value, by column. */
  readonly missing: Readonly<MissingValues>;
  readonly wrong: Pick<WrongRows, 'count' | 'first' | 'reasons'>;
  /** Slots that an earlier import stored with other values, and the first of them. */
  readonly other: {
    readonly slots: number;
    readonly first: (OtherRow & { readonly fileName: string; readonly series: ImportedNow }) | null;
  };
  readonly times: Readonly<Record<TimeForm, number>>;
  readonly series: readonly ImportedNow[];
};

/** @throws ImportRefused when a coin is unknown, or another import runs; and the reason of `signal` when it is aborted */
export async function importFiles(options: ImportOptions): Promise<Imported> {
  if (options.isTrial) return run(options, null);
  const ended = await withLockUnlessHeld(options.database.sql, IMPORT_LOCK, async () => {
    const transaction = await openImport(options.database, options);
    try {
      return { imported: await run(options, transaction) };
    } finally {
      await transaction.close();
    }
  });
  if (ended !== null) return ended.imported;
  throw new ImportRefused('another import is running; wait until it has ended');
}

const NOTHING_STAGED: Staged = {
  same: 0,
  twice: 0,
  updated: 0,
  contested: { rows: 0, first: [] },
  other: { slots: 0, first: null },
};

async function run(options: ImportOptions, transaction: ImportTransaction | null): Promise<Imported> {
  const { database, now, signal, files, skipsWrong, replaces, onRows = () => undefined } = options;
  const book = createSeriesBook({ sql: database.sql, transaction, now, skipsWrong });
  const times = createTimeReader(options.timeUnit);
  const wrong = createWrongRows();
  const storesNothingIfWrong = !skipsWrong;
  const importer = createRowImporter({ book, transaction, times, wrong, storesNothingIfWrong, signal, onRows });
  // A coin that is given for all rows must exist: otherwise no row would be left.
  if (skipsWrong) for (const { said } of files) if (said.coin !== undefined) await book.coins.coinOf(said.coin);
  for (const file of files) for await (const rows of file.read()) await importer.take(file, rows);
  await book.coins.check();
  await importer.finish();
  const ended = (
    outcome: Imported['outcome'],
    staged: Staged,
    counts = { added: 0, updated: 0, replaced: 0 },
  ): Imported => ({
    outcome,
    rows: importer.taken,
    ...counts,
    same: staged.same,
    twice: staged.twice,
    missing: importer.missing,
    wrong,
    other: { slots: staged.other.slots, first: nameOther(staged.other.first, files, book) },
    times: times.counts,
    series: book.all.map(named),
  });
  if (transaction === null) return ended(wrong.count > 0 && !skipsWrong ? 'wrong' : 'checked', NOTHING_STAGED);
  if (wrong.count > 0 && !skipsWrong) return ended('wrong', NOTHING_STAGED);
  const staged = await readRest(transaction, importer, wrong, files);
  if (wrong.count > 0 && !skipsWrong) return ended('wrong', staged);
  if (staged.other.slots > 0 && !replaces) return ended('other', staged);
  const counts = await finish(transaction, book, importer, now);
  await options.prove?.(transaction, book);
  signal.throwIfAborted();
  await transaction.commit();
  return ended('stored', staged, { added: counts, updated: staged.updated, replaced: staged.other.slots });
}

async function readRest(
  transaction: ImportTransaction,
  importer: RowImporter,
  wrong: WrongRows,
  files: readonly FileToImport[],
): Promise<Staged> {
  if (importer.staged === 0) return NOTHING_STAGED;
  const staged = await readStaged(transaction, MOST_NAMED);
  const { rows, first } = staged.contested;
  wrong.addMany(
    rows,
    TWO_ROWS_OF_A_SLOT,
    first.map(({ file, record }) => ({ file: files[file]!.name, record })),
  );
  return staged;
}

/** Resolves to the number of added candles. */
async function finish(
  transaction: ImportTransaction,
  book: SeriesBook,
  importer: RowImporter,
  now: Instant,
): Promise<number> {
  const straight = book.all.map(
    ({ before, added, sum }): Change => ({ seriesId: before.id, candles: added, digest: sumAsBigint(sum) }),
  );
  const merged = importer.staged === 0 ? [] : await applyStaged(transaction);
  const changes = new Map<number, Change>();
  for (const { seriesId, candles, digest } of [...straight, ...merged]) {
    const known = changes.get(seriesId);
    const sum = { candles: candles + (known?.candles ?? 0), digest: digest + (known?.digest ?? 0n) };
    changes.set(seriesId, { seriesId, ...sum });
  }
  const isNew = new Set(book.all.filter(({ before }) => before.candles === 0).map(({ before }) => before.id));
  const changed = [...changes.values()].filter(
    ({ seriesId, candles, digest }) => candles !== 0 || digest !== 0n || isNew.has(seriesId),
  );
  await noteSeries(transaction, changed, now);
  return changed.reduce((sum, { candles }) => sum + candles, 0);
}

const named = ({ coinId, quote, interval, before }: ImportSeries): ImportedNow => ({
  coinId,
  quote,
  interval,
  id: before.id,
});

function nameOther(
  first: OtherRow | null,
  files: readonly FileToImport[],
  book: SeriesBook,
): Imported['other']['first'] {
  if (first === null) return null;
  const series = book.all.find(({ before }) => before.id === first.seriesId)!;
  return { ...first, fileName: files[first.file]!.name, series: named(series) };
}
