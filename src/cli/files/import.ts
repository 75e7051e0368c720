/** `chandler import`: reads candles from other sources into separate tables. Safe to kill at any time: it stores everything or nothing. */
import type { Command } from 'commander';
import type { App } from '../../app.ts';
import { unlessAborted } from '../../core/concurrency/unless-aborted.ts';
import { formatBytes, formatCounted } from '../../core/format.ts';
import { type ExportToImport, openExport, type Proved, proveExport } from '../../lake/import/from-export.ts';
import { type Imported, type ImportOptions, importFiles } from '../../lake/import/import.ts';
import { findInputs } from '../../lake/import/input-files.ts';
import { type FileToImport, openFile, type ReadOptions } from '../../lake/import/open-files.ts';
import { ImportRefused } from '../../lake/refused.ts';
import { startBar } from '../output/bar.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT, type ExitCode, UsageError } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';
import { printJson } from '../shell/json.ts';
import { columnsOfFiles, printColumns } from './import-columns.ts';
import { type ImportCommandOptions, importOptions, readOptionsOf, sourceOf } from './import-options.ts';
import { importAsJson, printImport } from './import-text.ts';
import { dropCommand, listCommand } from './imported.ts';

export function importCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('import')
    .description(
      'read candles from elsewhere (CSV, NDJSON, Parquet, Arrow, or an export of another warehouse); they never mix with those of upstream',
    )
    .argument('[files...]', 'files, or folders of files');
  importOptions(command).action(
    context.action(async (paths: string[], options: ImportCommandOptions) => {
      const source = sourceOf(options);
      const read = readOptionsOf(options);
      if (paths.length === 0) throw new UsageError('Name the files to import, or folders of files.');
      return context.withApp({ schema: 'require', handlesInterrupt: true, changes: !options.dryRun }, (app) =>
        refusedIsUsage(() => runImport(app, context, { paths, source, read, options })),
      );
    }),
  );
  listCommand(command, context);
  dropCommand(command, context);
}

async function refusedIsUsage<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof ImportRefused ? new UsageError(sentence(error.message)) : error;
  }
}

const sentence = (text: string) => (/[.?]$/.test(text) ? text : `${text}.`);

type Request = {
  readonly paths: readonly string[];
  readonly source: string;
  readonly read: ReadOptions;
  readonly options: ImportCommandOptions;
};

async function runImport(app: App, { io, signal }: CommandContext, request: Request): Promise<ExitCode> {
  const { source, options } = request;
  const { dryRun = false, json = false } = options;
  const { exports, files, columns } = await openInputs(request, signal);
  const sizes = sizesOf(files);
  if (!json) printPlan(io.out, sizes, request);
  if (!json) for (const one of exports) printLeftOut(io.out, one);
  if (!json) printColumns(io.out, columns);
  const isCounted = sizes.rows !== null;
  const bar = await startBar(
    io.err,
    isCounted ? 'rows' : 'thousand rows',
    async () => sizes.rows ?? sizes.guessed / 1e3,
  );
  let seen = 0;
  const onRows = (rows: number) => {
    const before = seen;
    seen += rows;
    bar.add(isCounted ? rows : Math.floor(seen / 1e3) - Math.floor(before / 1e3));
  };
  let proved: Proved | null = null;
  const prove: ImportOptions['prove'] = async (transaction, book) => {
    for (const one of exports) {
      const found = await proveExport(transaction, book, one);
      proved = { series: found.series + (proved?.series ?? 0), months: found.months + (proved?.months ?? 0) };
    }
  };
  const imported = await importFiles({
    ...{ database: app.database, files, source, signal, onRows, isTrial: dryRun, now: app.clock.now() },
    ...{
      timeUnit: options.timeUnit ?? null,
      replaces: options.replace ?? false,
      skipsWrong: options.skipWrong ?? false,
    },
    ...(exports.length > 0 ? { prove } : {}),
  }).finally(bar.stop);
  const report = {
    source,
    files: files.length,
    bytes: sizes.bytes,
    imported,
    proved,
    leftOut: leftOutOf(exports),
    columns,
  };
  if (json) printJson(io.out, importAsJson(report));
  else printImport(io.out, report);
  return exitOf(imported);
}

function exitOf({ outcome }: Imported): ExitCode {
  return outcome === 'stored' || outcome === 'checked' ? EXIT.done : EXIT.failed;
}

async function openInputs({ paths, read, options }: Request, signal: AbortSignal) {
  const inputs = await findInputs(paths, options.format ?? null);
  const given = read.coin ?? read.interval ?? read.quote ?? Object.values(read.columns)[0] ?? null;
  if (inputs.exports.length > 0 && given !== null)
    throw new ImportRefused(
      `${inputs.exports[0]!.name} is an export, and its manifest says what is in it; leave out --coin, --interval, --quote and --columns`,
    );
  const exports: ExportToImport[] = [];
  for (const folder of inputs.exports) exports.push(await openExport(folder, { signal }));
  const files: FileToImport[] = [];
  for (const input of [...inputs.files, ...exports.flatMap((one) => one.files)])
    files.push(await unlessAborted(openFile(input, files.length, read), signal));
  // Without the files of exports, because the manifest of an export describes its columns.
  return { exports, files, columns: columnsOfFiles(files.slice(0, inputs.files.length)) };
}

type Sizes = {
  readonly files: number;
  readonly bytes: number;
  /** Null when only reading the files would tell. */
  readonly rows: number | null;
  readonly guessed: number;
};

/** Estimated bytes of a row in a text file: the length of a line in a CSV export. */
const BYTES_EACH = 100;

function sizesOf(files: readonly FileToImport[]): Sizes {
  const sum = (of: (file: FileToImport) => number) => files.reduce((total, file) => total + of(file), 0);
  const isKnown = files.every(({ rows }) => rows !== null);
  return {
    files: files.length,
    bytes: sum(({ bytes }) => bytes),
    rows: isKnown ? sum(({ rows }) => rows!) : null,
    guessed: sum(({ rows, bytes }) => rows ?? bytes / BYTES_EACH),
  };
}

function printPlan(out: Output, { files, bytes, rows }: Sizes, { source, options }: Request): void {
  const counted = rows === null ? '' : `, ${formatCounted(rows, 'row')}`;
  const what = options.dryRun ? 'checked only' : `into source ${source}`;
  out.write(`${formatCounted(files, 'file')}, ${formatBytes(bytes)}${counted}, ${what}\n`);
}

function printLeftOut(out: Output, { name, recounted, leftOut }: ExportToImport): void {
  const others = leftOut.length === 0 ? '' : `; left out, as only candles are imported: ${leftOut.join(', ')}`;
  out.write(`${name}: an export as of ${recounted.head.at}, whose files match its manifest${others}\n`);
}

const leftOutOf = (exports: readonly ExportToImport[]) => [...new Set(exports.flatMap(({ leftOut }) => leftOut))];
