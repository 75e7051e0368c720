/** Attestations as files, and the keys that sign them. */
import { createPrivateKey, createPublicKey, type KeyObject, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, readFile, rename, rm, stat } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { systemClock } from '../../clock.ts';
import { DAY } from '../../core/interval.ts';
import { ConfigurationError } from '../../ingest/outcome.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { type Attested, type AttestOptions, attest } from '../../views/attestation/attestation.ts';
import { checkFile, DamagedAttestation } from '../../views/attestation/check-file.ts';

export type WriteOptions = AttestOptions & {
  /** When it is aborted, nothing is written, and `writeAttestation` throws its reason. */
  readonly signal?: AbortSignal;
};

/**
 * Writes an attestation to `path`. The file appears under this name only when it is complete and synced to the disk. Until then, its name
 * contains a part that differs for each writer, and ends in `.part`. It replaces a file of the same name.
 */
export async function writeAttestation(
  sql: SqlOrTransaction,
  path: string,
  { signal, ...options }: WriteOptions,
): Promise<Attested> {
  const part = `${path}.${randomUUID()}.part`;
  const file = await open(part, 'w');
  try {
    const lines = attest(sql, options);
    for (let next = await lines.next(); ; next = await lines.next()) {
      signal?.throwIfAborted();
      if (!next.done) {
        await file.write(next.value);
        continue;
      }
      await file.sync();
      await file.close();
      await rename(part, path);
      return next.value;
    }
  } catch (error) {
    await file.close();
    await rm(part, { force: true });
    throw error;
  }
}

/**
 * Checks that an attestation may replace the file at `path`: only an attestation or an empty file may be replaced, and a signed attestation
 * only by a signed one. @throws ConfigurationError that names `setting` and says what would be right
 */
export async function checkReplaceable(
  path: string,
  setting: string,
  { isSigned }: { readonly isSigned: boolean },
): Promise<void> {
  // The writer of the file reports a problem with the folder.
  const found = await stat(path).catch(() => null);
  if (found === null || (found.isFile() && found.size === 0)) return;
  const { signature } = await checkFile(linesOf(path), null).catch((error: unknown) => {
    const { code } = error as NodeJS.ErrnoException;
    if (!(error instanceof DamagedAttestation) && code === undefined) throw error;
    const why = error instanceof DamagedAttestation ? error.message : `cannot be read (${whyUnreadable(error)})`;
    throw new ConfigurationError(`${setting}: ${path} exists, and ${why}; name a file that does not exist`);
  });
  if (!isSigned && signature !== 'none')
    throw new ConfigurationError(
      `${setting}: ${path} is a signed attestation, and the new one would not be signed; add --sign, or name another file`,
    );
}

/** The lines of a file, without line feeds. The whole file is never in memory. */
export async function* linesOf(path: string): AsyncGenerator<string> {
  const input = createReadStream(path);
  const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
  let failed: unknown = null;
  input.on('error', (error) => {
    failed = error;
    lines.close();
  });
  yield* lines;
  if (failed !== null) throw failed;
}

/** The Ed25519 key in a PEM file. @throws ConfigurationError that names `setting` and what would be right. */
export async function readPrivateKey(path: string, setting: string): Promise<KeyObject> {
  const pem = await readPem(path, setting);
  if (/ENCRYPTED/.test(pem))
    throw new ConfigurationError(
      `${setting}: the key in ${path} is encrypted; give one that is not: openssl pkey -in ${path} -out plain.pem`,
    );
  return ed25519(() => createPrivateKey(pem), `${setting}: ${path} is not a private Ed25519 key`);
}

/** The same for a public key. */
export async function readPublicKey(path: string, setting: string): Promise<KeyObject> {
  const pem = await readPem(path, setting);
  // Node would derive the public key from it, and nobody would notice that a private key lies in the wrong place.
  if (/PRIVATE KEY/.test(pem))
    throw new ConfigurationError(
      `${setting}: the key in ${path} is a private one; give the public one: openssl pkey -in ${path} -pubout -out public.pem`,
    );
  return ed25519(() => createPublicKey(pem), `${setting}: ${path} is not a public Ed25519 key`);
}

async function readPem(path: string, setting: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new ConfigurationError(`${setting}: ${path} cannot be read (${whyUnreadable(error)})`);
  }
}

// The named file may contain somebody's key, so the advice must not overwrite it.
const MAKE_ONE = 'make one with: openssl genpkey -algorithm ed25519 -out chandler-key.pem';

function ed25519(read: () => KeyObject, problem: string): KeyObject {
  let key: KeyObject;
  try {
    key = read();
  } catch {
    throw new ConfigurationError(`${problem} in PEM form; ${MAKE_ONE}`);
  }
  if (key.asymmetricKeyType === 'ed25519') return key;
  throw new ConfigurationError(`${problem}, but one for ${key.asymmetricKeyType}; ${MAKE_ONE}`);
}

/** Says in words why a file cannot be read or written. */
export function whyUnreadable(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  switch (code) {
    case 'ENOENT':
      return 'there is no such file or folder';
    case 'EISDIR':
      return 'it is a folder';
    case 'ENOTDIR':
      return 'a part of its path is no folder';
    case 'EACCES':
    case 'EPERM':
      return 'this user may not do that';
    case 'EROFS':
      return 'the disk is read-only';
    default:
      return code ?? 'unknown';
  }
}

/** Removes the partial file of a writer that was killed. A file younger than a day stays, because another process may be writing it. */
export async function removeAbandoned(part: string): Promise<void> {
  const found = await stat(part).catch(() => null);
  // The file system's times come from the machine's clock.
  if (found !== null && systemClock.now() - found.mtimeMs > DAY) await rm(part, { force: true });
}
