/** `chandler export`: writes the warehouse into files, with a manifest. Safe to kill at any time, and safe to repeat. */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Command } from 'commander';
import type { App } from '../../app.ts';
import { nearestExisting, readFree } from '../../background/health/disk.ts';
import { fileProblem } from '../../core/as-error.ts';
import { formatBytes, formatCounted, formatInstant, formatRoughly, shellWord, toIso } from '../../core/format.ts';
import { describeInterval } from '../../core/interval.ts';
import { type Address, nameOfAddress } from '../../lake/destination/address.ts';
import { openFolder } from '../../lake/destination/folder.ts';
import { openDestination } from '../../lake/destination/open-destination.ts';
import { type Estimate, estimate } from '../../lake/export/estimate.ts';
import { type Exported, exportFiles } from '../../lake/export/export.ts';
import type { Plan } from '../../lake/export/plan-files.ts';
import type { Selection } from '../../lake/export/selection.ts';
import { type UnstoredInterval, unstoredIntervals } from '../../lake/export/unstored-intervals.ts';
import { ExportRefused } from '../../lake/refused.ts';
import { seriesFilter } from '../input/series-options.ts';
import { startBar } from '../output/bar.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT, type ExitCode, UsageError } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';
import { printJson } from '../shell/json.ts';
import { addressOption, asCommandError } from './address-option.ts';
import { type ExportCommandOptions, exportOptions, readSelection } from './export-options.ts';

export function exportCommand(program: Command, context: CommandContext): void {
  exportOptions(
    program
      .command('export')
      .description(
        'write the warehouse into files: Parquet, CSV, NDJSON or Arrow, with a manifest that proves them; a later export writes only what has changed',
      ),
  ).action(
    context.action(async (options: ExportCommandOptions) => {
      const out = await outOf(options);
      const selection = readSelection(options, context.clock.now());
      return context.withApp({ schema: 'require', handlesInterrupt: true }, (app) =>
        runExport(app, context, out, selection, options),
      );
    }),
  );
}

/** @throws UsageError when nothing can be written there */
async function outOf({ out }: ExportCommandOptions): Promise<Address> {
  // Commander would report a missing required option before a misspelt one, so this checks it.
  if (out === undefined || out === '') throw new UsageError('--out is missing; name a folder, like --out ./files.');
  const address = addressOption('--out', out);
  if (address.kind === 's3') return address;
  if (path.resolve(out) === path.parse(path.resolve(out)).root)
    throw new UsageError(`--out: ${out} is the root of the disk; name a folder, like ${path.join(out, 'files')}.`);
  const found = await stat(out).catch(() => null);
  if (found !== null && !found.isDirectory()) throw new UsageError(`--out: ${out} is a file; name a folder.`);
  // On a read-only disk Node cannot make the folder, and reports that there is no such folder.
  const problem = await access(await nearestExisting(path.resolve(out)), constants.W_OK).then(() => null, fileProblem);
  if (problem !== null)
    throw new UsageError(`--out: nothing can be written to ${out} (${problem}); name another folder.`);
  return address;
}

type PlanWithEstimate = Plan & Estimate;

async function runExport(
  { database, config }: App,
  { io, signal }: CommandContext,
  address: Address,
  selection: Selection,
  { dryRun = false, json = false }: ExportCommandOptions,
): Promise<ExitCode> {
  const { coinIds, datasets, format, layout } = selection;
  const out = nameOfAddress(address);
  if (coinIds !== null && datasets.some(({ kind }) => kind === 'series')) await seriesFilter(database.sql, coinIds, {});
  let planned: PlanWithEstimate | null = null;
  let bar: Awaited<ReturnType<typeof startBar>> | null = null;
  const onPlan = async (plan: Plan) => {
    planned = { ...plan, ...estimate(plan, format, layout) };
    if (!json) printPlan(io.out, planned, selection, out);
    for (const one of await unstoredIntervals(database.sql, selection))
      io.err.write(`warning: ${describeUnstored(one)}\n`);
    if (dryRun) return false;
    if (address.kind === 'folder') await checkRoom(out, planned.bytes);
    bar = await startBar(io.err, 'rows', async () => plan.rows);
    return true;
  };
  try {
    const destination = await openDestination(address, config.s3);
    const options = { database, destination, selection, signal, onPlan };
    const exported = await exportFiles({ ...options, onRows: (rows) => bar?.add(rows) });
    if (json) printJson(io.out, asJson(out, planned!, exported));
    else if (exported !== null) print(io.out, out, exported);
    if (exported !== null && exported.foreign.length > 0) io.err.write(`warning: ${describeForeign(out, exported)}\n`);
    return EXIT.done;
  } catch (error) {
    if (signal.aborted && planned !== null)
      io.err.write('Finished files stay: the same command continues from there.\n');
    throw error instanceof ExportRefused ? new UsageError(`--out: ${error.message}`) : asCommandError('--out', error);
  } finally {
    (bar as Awaited<ReturnType<typeof startBar>> | null)?.stop();
  }
}

function describeUnstored({ interval, madeOf }: UnstoredInterval): string {
  if (madeOf === null) return `there are no ${describeInterval(interval)} of these coins`;
  return `${interval} candles of these coins are made of ${madeOf} ones; an export contains only what the upstream sent: export ${madeOf}`;
}

const MOST_NAMED = 20;

function describeForeign(out: string, { foreign }: Exported): string {
  const more = foreign.length > MOST_NAMED ? `, and ${foreign.length - MOST_NAMED} more` : '';
  const names = `${foreign.slice(0, MOST_NAMED).join(', ')}${more}`;
  const what = foreign.length === 1 ? 'a file that is' : 'files that are';
  return `${out} has ${what} not part of the export; a program that reads the whole folder reads them, too: ${names}`;
}

/** @throws UsageError when the disk is by far too small for it, even if all files of an earlier run in this folder stay or are replaced */
async function checkRoom(out: string, bytes: number): Promise<void> {
  const free = await readFree(await nearestExisting(path.resolve(out))).catch(() => Number.POSITIVE_INFINITY);
  if (free >= bytes) return;
  let existing = 0;
  for await (const file of openFolder(out).list()) existing += file.bytes;
  if (free + existing >= bytes) return;
  throw new UsageError(
    `--out: the disk of ${out} has ${formatBytes(free)} free, and the files may need ${formatBytes(bytes)}; choose another disk, or export less.`,
  );
}

function printPlan(
  out: Output,
  { rows, bytes, ms }: PlanWithEstimate,
  { datasets, format, layout }: Selection,
  to: string,
): void {
  const what =
    datasets.length > 6 ? formatCounted(datasets.length, 'dataset') : datasets.map(({ name }) => name).join(', ');
  const size = `about ${formatCounted(rows, 'row')}, ${formatBytes(bytes)}, ${formatRoughly(ms)}`;
  out.write(`${what} as ${format} (${layout}) to ${to}: ${size}\n`);
}

function print(out: Output, to: string, { at, root, written, removed, ...all }: Exported): void {
  const text = ({ files, rows, bytes }: Exported['written']) =>
    `${formatCounted(files, 'file')}, ${formatCounted(rows, 'row')}, ${formatBytes(bytes)}`;
  out.write(`\n${to}: ${text(all)}, as of ${formatInstant(at)}\n`);
  if (written.files < all.files) out.write(`written now: ${text(written)}; the others had not changed\n`);
  if (removed.length > 0)
    out.write(
      `removed: ${formatCounted(removed.length, 'file')} that ${removed.length === 1 ? 'is' : 'are'} no longer part of it\n`,
    );
  out.write(`root ${root}\nchandler verify --files ${shellWord(to)} recounts them.\n`);
}

function asJson(out: string, { rows, bytes, ms }: PlanWithEstimate, exported: Exported | null) {
  const plan = { rows, bytes: Math.round(bytes), seconds: Math.ceil(ms / 1_000) };
  return { out, plan, export: exported === null ? null : { ...exported, at: toIso(exported.at) } };
}
