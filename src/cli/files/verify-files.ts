/** `chandler verify --files`: recounts an export against its manifest, an attestation, and the warehouse. Exits 1 when something differs. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { openAttestation, readPublicKey } from '../../background/attestation/attestation-file.ts';
import type { Config } from '../../config.ts';
import { formatBytes, formatCounted, formatInstant, toIso } from '../../core/format.ts';
import type { Destination } from '../../lake/destination/destination.ts';
import { openDestination } from '../../lake/destination/open-destination.ts';
import { MANIFEST_FILE } from '../../lake/manifest/manifest.ts';
import { DamagedManifest } from '../../lake/manifest/read-manifest.ts';
import { compareWithAttestation } from '../../lake/verify/against-attestation.ts';
import { compareWithWarehouse } from '../../lake/verify/against-warehouse.ts';
import { compareArchived } from '../../lake/verify/archived.ts';
import { type FileFinding, fileFinding } from '../../lake/verify/finding.ts';
import { compareHistories } from '../../lake/verify/histories.ts';
import { type Recounted, recount } from '../../lake/verify/recount.ts';
import { createSlotReader } from '../../lake/verify/slots.ts';
import { type Finding, VERDICTS, type Verdict } from '../../views/attestation/finding.ts';
import { startBar } from '../output/bar.ts';
import type { CommandContext } from '../shell/context.ts';
import { CommandFailed, EXIT, type ExitCode, UsageError } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';
import { printJson } from '../shell/json.ts';
import { addressOption, asCommandError } from './address-option.ts';

type VerifyFilesOptions = {
  readonly files: string;
  readonly against?: string | undefined;
  readonly key?: string | undefined;
  readonly json?: boolean | undefined;
};

/** How often each verdict occurred. Null when there was nothing to compare with. */
type Counts = Readonly<Record<Verdict, number>> | null;

type Verified = {
  readonly recounted: Recounted;
  readonly findings: readonly FileFinding[];
  readonly warehouse: Counts;
  readonly attestation: Counts;
};

/** @throws UsageError when there is no readable export or attestation */
export async function verifyFiles(context: CommandContext, options: VerifyFilesOptions): Promise<ExitCode> {
  const address = addressOption('--files', options.files);
  const destination = await openDestination(address, context.config().s3);
  try {
    return await verifyDestination(context, destination, options);
  } catch (error) {
    throw asCommandError('--files', error);
  }
}

async function verifyDestination(
  context: CommandContext,
  destination: Destination,
  options: VerifyFilesOptions,
): Promise<ExitCode> {
  const { io, signal } = context;
  const bar = await startBar(io.err, 'MB', () => megabytes(destination));
  let read = 0;
  const onFile = (bytes: number) => {
    const before = Math.floor(read / 1e6);
    read += bytes;
    bar.add(Math.floor(read / 1e6) - before);
  };
  const recounted = await recount(destination, { signal, onFile })
    .catch((error: unknown) => {
      if (!(error instanceof DamagedManifest)) throw error;
      const isMissing = error.message === 'is missing';
      if (isMissing)
        throw new UsageError(`--files: ${options.files} has no ${MANIFEST_FILE}; name the folder of an export`);
      throw new CommandFailed(`${destination.name}/${MANIFEST_FILE} ${error.message}`);
    })
    .finally(bar.stop);
  const attested =
    options.against === undefined ? null : await compareAttested(context, recounted, options.against, options.key);
  const stored = hasWarehouse(context.config()) ? await compareStored(context, destination, recounted) : null;
  const findings = [...recounted.findings, ...(attested?.findings ?? []), ...(stored?.findings ?? [])];
  const verified = { recounted, findings, warehouse: stored?.counts ?? null, attestation: attested?.counts ?? null };
  if (options.json) printJson(io.out, asJson(verified));
  else print(io.out, options.files, verified);
  return findings.length === 0 ? EXIT.done : EXIT.failed;
}

async function megabytes(destination: Destination): Promise<number> {
  let bytes = 0;
  for await (const file of destination.list()) bytes += file.bytes;
  return Math.ceil(bytes / 1e6);
}

/** Whether there is a warehouse to compare with. Without DATABASE_URL, only if the embedded server was used here before: this check creates none. */
function hasWarehouse({ databaseUrl, home }: Config): boolean {
  return databaseUrl !== null || existsSync(path.join(home, 'data'));
}

type Compared = { readonly counts: Record<Verdict, number>; readonly findings: readonly FileFinding[] };

function noCounts(): Record<Verdict, number> {
  return Object.fromEntries(VERDICTS.map((verdict) => [verdict, 0])) as Record<Verdict, number>;
}

function compareStored(context: CommandContext, destination: Destination, recounted: Recounted): Promise<Compared> {
  return context.withApp({ schema: 'require' }, async ({ config, database, clock }) => {
    const counts = noCounts();
    const findings: FileFinding[] = [];
    const slots = createSlotReader(database.sql, destination, recounted);
    const options = { keep: config.keep, now: clock.now() };
    for await (const found of compareWithWarehouse(database.sql, recounted, slots, options)) {
      counts[found.verdict]++;
      if (found.verdict === 'tampered') findings.push(findingOf(found, found.slots));
    }
    for await (const found of compareArchived(database.sql, destination, recounted, slots)) {
      counts[found.verdict]++;
      if (found.verdict === 'tampered') findings.push(findingOf(found, []));
    }
    const histories = await compareHistories(database, destination, recounted);
    counts.equal += histories.counts.equal;
    counts.changed += histories.counts.changed;
    return { counts, findings: [...findings, ...histories.findings] };
  });
}

async function compareAttested(
  context: CommandContext,
  recounted: Recounted,
  file: string,
  key: string | undefined,
): Promise<Compared> {
  const publicKey = key === undefined ? null : await readPublicKey(key, '--key');
  const { checked, facts } = await openAttestation(file, '--against', publicKey);
  const counts = noCounts();
  const findings: FileFinding[] = [];
  for await (const found of compareWithAttestation(recounted, facts(), {
    at: checked.at,
    keep: context.config().keep,
  })) {
    counts[found.verdict]++;
    if (found.verdict === 'tampered') findings.push(findingOf(found, []));
  }
  return { counts, findings };
}

function findingOf({ subject, month, detail }: Finding, slots: readonly number[]): FileFinding {
  return fileFinding(null, detail, { series: subject, month, slots });
}

function asJson({ recounted: { head, root, files, rows, bytes }, findings, warehouse, attestation }: Verified) {
  return {
    at: head.at,
    root,
    files: files.length,
    rows,
    bytes,
    isEqual: findings.length === 0,
    findings: findings.map((found) => ({ ...found, slots: found.slots.map(toIso) })),
    warehouse,
    attestation,
  };
}

const MOST_SLOTS = 10;

function print(out: Output, folder: string, { recounted, findings, warehouse, attestation }: Verified): void {
  const { head, root, files, rows, bytes } = recounted;
  const size = `${formatCounted(files.length, 'file')}, ${formatCounted(rows, 'row')}, ${formatBytes(bytes)}`;
  out.write(`${folder}: ${size}, as of ${formatInstant(Date.parse(head.at))}\nroot ${root}\n\n`);
  for (const { path: file, series, month, problem, slots } of findings) {
    const subject = file ?? [series, month].filter((part) => part !== null).join(' ');
    out.write(`${subject}: ${problem}\n`);
    if (slots.length === 0) continue;
    const shown = slots.slice(0, MOST_SLOTS).map((at) => formatInstant(at));
    const more = slots.length > MOST_SLOTS ? ' and more (--json lists them)' : '';
    out.write(`  slots ${shown.join(', ')}${more}\n`);
  }
  if (findings.length > 0) out.write('\n');
  printCounts(out, 'the attestation', attestation);
  printCounts(out, 'the warehouse', warehouse);
  if (warehouse === null) out.write('There is no warehouse to compare with; name one with DATABASE_URL.\n');
  out.write(
    findings.length === 0
      ? 'The files match the manifest.\n'
      : `${advise(recounted.findings.length, findings.length)}\n`,
  );
}

/** A complete file may be the last copy of rows that retention has removed from Postgres, so the advice is not to remove it. */
function advise(damaged: number, all: number): string {
  const sentences = [
    `${formatCounted(all, 'difference')}.`,
    damaged > 0
      ? 'Remove the files that do not match the manifest: the same export, or the next run of the lake, writes them again if the warehouse still has their rows.'
      : '',
    all > damaged
      ? 'Keep the files that match the manifest but have other rows than the warehouse: chandler verify shows whether the warehouse was changed. If retention removed the rows, run this command with the CHANDLER_KEEP_CANDLES of the service.'
      : '',
  ];
  return sentences.filter((sentence) => sentence !== '').join(' ');
}

function printCounts(out: Output, what: string, counts: Counts): void {
  if (counts === null) return;
  const found = VERDICTS.filter((verdict) => counts[verdict] > 0).map(
    (verdict) => `${counts[verdict]} ${verdict === 'tampered' ? 'different' : verdict}`,
  );
  out.write(`compared with ${what}, months of series and files of histories: ${found.join(', ') || 'none'}\n`);
}
