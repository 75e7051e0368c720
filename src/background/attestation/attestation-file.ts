/** Attestations as files, and the keys that sign them. */
import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, rm, stat } from 'node:fs/promises';
import { systemClock } from '../../clock.ts';
import { fileProblem } from '../../core/as-error.ts';
import { unlessAborted } from '../../core/concurrency/unless-aborted.ts';
import { DAY } from '../../core/interval.ts';
import { ConfigurationError } from '../../ingest/outcome.ts';
import { writeWhole } from '../../lake/destination/folder.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { type Attested, type AttestOptions, attest } from '../../views/attestation/attestation.ts';
import { type CheckedFile, checkFile, DamagedAttestation } from '../../views/attestation/check-file.ts';

type WriteOptions = AttestOptions & {
  /** When it is aborted, nothing is written, and `writeAttestation` throws its reason. */
  readonly signal?: AbortSignal;
  /** Also after an error, settle only when nothing is read any more: the caller will end the transaction. */
  readonly waitsForReads?: boolean;
};

/** Writes an attestation to `path`. */
export async function writeAttestation(
  sql: SqlOrTransaction,
  path: string,
  { signal, waitsForReads = false, ...options }: WriteOptions,
): Promise<Attested> {
  return writeWhole(path, async (file) => {
    const lines = attest(sql, options);
    try {
      const read = () => (signal === undefined ? lines.next() : unlessAborted(lines.next(), signal));
      for (let next = await read(); ; next = await read()) {
        if (next.done) return next.value;
        // `write` may write only a part without an error, when the disk becomes full; this writes all.
        await file.appendFile(next.value);
      }
    } catch (error) {
      if (waitsForReads) await lines.return(undefined as never).catch(() => undefined);
      throw error;
    }
  });
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
    const why = error instanceof DamagedAttestation ? error.message : `cannot be read (${fileProblem(error)})`;
    throw new ConfigurationError(`${setting}: ${path} exists, and ${why}; name a file that does not exist`);
  });
  if (!isSigned && signature !== 'none')
    throw new ConfigurationError(
      `${setting}: ${path} is a signed attestation, and the new one would not be signed; add --sign, or name another file`,
    );
}

type OpenedAttestation = {
  readonly checked: CheckedFile;
  /**
   * The lines between the first and the last. They are read from the file again, because they may not fit into memory.
   * @throws DamagedAttestation after the last line if the file is not the checked one any more
   */
  readonly facts: (onFact?: () => void) => AsyncGenerator<string>;
};

/**
 * Checks the attestation at `path`. @throws ConfigurationError that names `setting` if the file cannot be read, DamagedAttestation that names the
 * file if it cannot be trusted
 */
export async function openAttestation(
  path: string,
  setting: string,
  key: KeyObject | null,
): Promise<OpenedAttestation> {
  const explained = (error: unknown) => {
    if (error instanceof DamagedAttestation) return new DamagedAttestation(`${path} ${error.message}`);
    if ((error as NodeJS.ErrnoException).code === undefined) return error;
    return new ConfigurationError(`${setting}: ${path} cannot be read (${fileProblem(error)})`);
  };
  const checked = await checkFile(linesOf(path), key).catch((error: unknown) => {
    throw explained(error);
  });
  async function* facts(onFact?: () => void) {
    const hash = createHash('sha256');
    try {
      let i = 0;
      for await (const line of linesOf(path)) {
        if (i > 0 && i <= checked.facts) {
          hash.update(`${line}\n`);
          onFact?.();
          yield line;
        }
        i++;
      }
    } catch (error) {
      throw explained(error);
    }
    if (hash.digest('hex') !== checked.root)
      throw new DamagedAttestation(`${path} was changed while it was read; run the command again`);
  }
  return { checked, facts };
}

/** More characters than any line of an attestation has: a month costs about thirty. */
const LONGEST_LINE = 2 ** 24;

/** The lines of a file, without line feeds. The whole file is never in memory. @throws DamagedAttestation if it is no file of lines */
async function* linesOf(path: string): AsyncGenerator<string> {
  const found = await stat(path);
  // A pipe can be read only once, and a device may have no end.
  if (!found.isFile() && !found.isDirectory())
    throw new DamagedAttestation('is not a file but a pipe or a device, which can be read only once');
  let rest = '';
  for await (const chunk of createReadStream(path, 'utf8')) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    if (rest.length > LONGEST_LINE)
      throw new DamagedAttestation('is not an attestation: it has a line that is too long');
    for (const line of lines) yield line.replace(/\r$/, '');
  }
  if (rest !== '') yield rest;
}

/** The Ed25519 key in a PEM file. @throws ConfigurationError that names `setting` and what would be right. */
export async function readPrivateKey(path: string, setting: string): Promise<KeyObject> {
  const pem = await readPem(path, setting);
  if (/ENCRYPTED/.test(pem))
    throw new ConfigurationError(
      `${setting}: the key in ${path} is encrypted; give one that is not: openssl pkey -in ${path} -out plain.pem`,
    );
  return ed25519(() => createPrivateKey(pem), `${setting}: ${path} is not a private Ed25519 key`, MAKE_ONE);
}

/** The same for a public key. */
export async function readPublicKey(path: string, setting: string): Promise<KeyObject> {
  const pem = await readPem(path, setting);
  // Node would derive the public key from it, and nobody would notice that a private key lies in the wrong place.
  if (/PRIVATE KEY/.test(pem))
    throw new ConfigurationError(
      `${setting}: the key in ${path} is a private one; give the public one: openssl pkey -in ${path} -pubout -out public.pem`,
    );
  return ed25519(() => createPublicKey(pem), `${setting}: ${path} is not a public Ed25519 key`, GET_IT);
}

async function readPem(path: string, setting: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new ConfigurationError(`${setting}: ${path} cannot be read (${fileProblem(error)})`);
  }
}

// The named file may contain somebody's key, so the advice must not overwrite it.
const MAKE_ONE = 'make one with: openssl genpkey -algorithm ed25519 -out chandler-key.pem';
const GET_IT =
  'get it from whoever signed; they make it from their key with: openssl pkey -in chandler-key.pem -pubout -out chandler-public.pem';

function ed25519(read: () => KeyObject, problem: string, advice: string): KeyObject {
  let key: KeyObject;
  try {
    key = read();
  } catch {
    throw new ConfigurationError(`${problem} in PEM form; ${advice}`);
  }
  if (key.asymmetricKeyType === 'ed25519') return key;
  throw new ConfigurationError(`${problem}, but one for ${key.asymmetricKeyType}; ${advice}`);
}

/** Removes the partial file of a writer that was killed. A file younger than a day stays, because another process may be writing it. */
export async function removeAbandoned(part: string): Promise<void> {
  const found = await stat(part).catch(() => null);
  // The file system's times come from the machine's clock.
  if (found !== null && systemClock.now() - found.mtimeMs > DAY) await rm(part, { force: true });
}
