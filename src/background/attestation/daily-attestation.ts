/** The attestations that the service writes into a folder, one a day: which of them it keeps, and which is the newest. */
import { mkdir, open, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Clock, Instant } from '../../clock.ts';
import type { Config } from '../../config.ts';
import { createSharedRead } from '../../core/concurrency/shared-read.ts';
import { toIso } from '../../core/format.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { Attested } from '../../views/attestation/attestation.ts';
import { readPrivateKey, removeAbandoned, writeAttestation } from './attestation-file.ts';

type AttestSettings = NonNullable<Config['attest']>;

/** `attestation-2024-01-31.jsonl`. It differs from the default name of `chandler attest`, so that the service never removes files of that command. */
const NAME = /^attestation-(\d{4}-\d\d)-\d\d\.jsonl$/;
const PART = /^attestation-[\d-]{10}\.jsonl\.[\da-f-]{36}\.part$/;
/** The service keeps older files only if they are the first of their month, so the folder grows by twelve files a year. */
const KEPT_DAYS = 31;

/**
 * Writes today's attestation, replaces an earlier one of today, and removes the files that need not be kept.
 * @throws ConfigurationError when the key cannot be used, and the file system's error when the folder cannot be written
 */
export async function attestToday(
  sql: Sql,
  { dir, keyFile }: AttestSettings,
  { now, signal }: { readonly now: Instant; readonly signal: AbortSignal },
): Promise<Attested & { readonly file: string }> {
  const key = keyFile === null ? null : await readPrivateKey(keyFile, 'CHANDLER_ATTEST_KEY');
  await mkdir(dir, { recursive: true });
  const file = path.join(dir, `attestation-${toIso(now)!.slice(0, 10)}.jsonl`);
  const attested = await writeAttestation(sql, file, { at: now, key, signal });
  await removeOld(dir);
  return { ...attested, file };
}

async function removeOld(dir: string): Promise<void> {
  const names = await readdir(dir);
  const newestFirst = attestationsOf(names).reverse();
  const firsts = new Map(newestFirst.map((name) => [NAME.exec(name)![1], name]));
  const kept = new Set([...newestFirst.slice(0, KEPT_DAYS), ...firsts.values()]);
  for (const name of newestFirst) if (!kept.has(name)) await rm(path.join(dir, name), { force: true });
  for (const name of names.filter((name) => PART.test(name))) await removeAbandoned(path.join(dir, name));
}

/** The attestations among these names, oldest first. */
function attestationsOf(names: readonly string[]): string[] {
  return names.filter((name) => NAME.test(name)).sort();
}

type NewestAttestation =
  | { readonly file: string; readonly at: string; readonly root: string; readonly isSigned: boolean }
  /** There is none yet, or none can be read. `problem` says why. */
  | { readonly file: null; readonly problem: string };

const READ_AGAIN_MS = 10_000;

/** Reads the newest attestation of `dir` for `/health`, at most once in ten seconds, no matter how often callers request it. */
export function createNewestAttestation(dir: string, clock: Clock): () => Promise<NewestAttestation> {
  return createSharedRead({ clock, ms: READ_AGAIN_MS, read: () => readNewest(dir) });
}

async function readNewest(dir: string): Promise<NewestAttestation> {
  try {
    const file = attestationsOf(await readdir(dir)).at(-1);
    if (file === undefined) return { file: null, problem: 'no attestation was written yet' };
    return { file, ...(await readEnds(path.join(dir, file))) };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return { file: null, problem: 'no attestation was written yet' };
    return { file: null, problem: `the newest attestation cannot be read: ${code ?? message}` };
  }
}

/** More bytes than the first or the last line of an attestation has. */
const END_BYTES = 1024;

/** Reads only the first and the last line, because there may be many lines between them. */
async function readEnds(file: string): Promise<{ at: string; root: string; isSigned: boolean }> {
  const handle = await open(file, 'r');
  try {
    const { size } = await handle.stat();
    const read = async (position: number) => {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(END_BYTES), 0, END_BYTES, position);
      return buffer.toString('utf8', 0, bytesRead).trimEnd().split('\n');
    };
    const head = (await read(0))[0]!;
    const end = (await read(Math.max(0, size - END_BYTES))).at(-1)!;
    const { at } = JSON.parse(head) as { at: string };
    const { root, signature } = JSON.parse(end) as { root: string; signature?: string };
    return { at, root, isSigned: signature !== undefined };
  } finally {
    await handle.close();
  }
}
