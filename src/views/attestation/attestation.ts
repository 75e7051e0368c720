/**
 * Writes the lines of an attestation: a head with the instant; the facts; and the root, which is the SHA-256 of the facts, signed or not.
 * docs/proof.md describes the format.
 */
import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import type { Instant } from '../../clock.ts';
import { toIso } from '../../core/format.ts';
import { VERSION } from '../../core/version.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { readAllSeries } from './read-series.ts';
import { writeSeries } from './series-line.ts';
import { readTables } from './tables.ts';

export const FORMAT = 1;
/** The origin of an empty warehouse: the first answer decides whose data it holds. */
export const NOTHING_YET = 'nothing yet';

export type Root = {
  /** SHA-256 of the facts, in hexadecimal digits. */
  readonly root: string;
  /** Ed25519, base64; absent when the attestation is not signed. */
  readonly signature?: string;
  /** The key to check the signature with: base64 of the DER form. Alone it proves nothing: get the key from its owner. */
  readonly publicKey?: string;
};

export type Attested = Root & { readonly at: Instant; readonly series: number; readonly bytes: number };

export type AttestOptions = {
  readonly at: Instant;
  /** Null: the attestation is not signed. */
  readonly key: KeyObject | null;
  /** Called when a series has been read, to show progress. */
  readonly onSeries?: () => void;
};

/**
 * Yields every line with its line feed, and returns what was attested. Two attestations of one state differ only in their head (and in the
 * signature, which covers the head).
 */
export async function* attest(
  sql: SqlOrTransaction,
  { at, key, onSeries }: AttestOptions,
): AsyncGenerator<string, Attested> {
  const head = JSON.stringify({ attestation: FORMAT, at: toIso(at), chandler: VERSION });
  yield `${head}\n`;
  const hash = createHash('sha256');
  let [series, bytes] = [0, Buffer.byteLength(head) + 1];
  for await (const { line, isSeries } of facts(sql)) {
    hash.update(`${line}\n`);
    bytes += Buffer.byteLength(line) + 1;
    if (isSeries) {
      series++;
      onSeries?.();
    }
    yield `${line}\n`;
  }
  const root = signed(head, hash.digest('hex'), key);
  const last = `${JSON.stringify(root)}\n`;
  yield last;
  bytes += Buffer.byteLength(last);
  return { ...root, at, series, bytes };
}

async function* facts(sql: SqlOrTransaction): AsyncGenerator<{ readonly line: string; readonly isSeries: boolean }> {
  const [origin] = await sql<{ simulator: string | null }[]>`select simulator from ops.origin`;
  const from = origin === undefined ? NOTHING_YET : (origin.simulator ?? 'upstream');
  yield { line: JSON.stringify({ origin: from }), isSeries: false };
  for await (const { before, ...digest } of readTables(sql)) {
    const line = JSON.stringify(before === undefined ? digest : { ...digest, before: toIso(before) });
    yield { line, isSeries: false };
  }
  for await (const state of readAllSeries(sql)) yield { line: writeSeries(state), isSeries: true };
}

/** The text to sign: the first line, the root, and a line feed after each. */
function signedText(head: string, root: string): Buffer {
  return Buffer.from(`${head}\n${root}\n`);
}

function signed(head: string, root: string, key: KeyObject | null): Root {
  if (key === null) return { root };
  const publicKey = createPublicKey(key).export({ type: 'spki', format: 'der' }).toString('base64');
  return { root, signature: sign(null, signedText(head, root), key).toString('base64'), publicKey };
}

/** Whether this public key made the signature of this head and root. */
export function isSignedBy(key: KeyObject, head: string, { root, signature }: Root): boolean {
  return signature !== undefined && verify(null, signedText(head, root), key, Buffer.from(signature, 'base64'));
}
