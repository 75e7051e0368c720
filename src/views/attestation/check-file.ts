/** Checks that a file is an attestation, complete, unchanged and signed. This does not need the warehouse. */
import { createHash, createPublicKey, type KeyObject } from 'node:crypto';
import type { Instant } from '../../clock.ts';
import { FORMAT, isSignedBy, type Root } from './attestation.ts';

/** The file cannot be trusted. From `checkFile`, the message completes a sentence that begins with its name. */
export class DamagedAttestation extends Error {
  override readonly name = 'DamagedAttestation';
}

export type CheckedFile = {
  readonly at: Instant;
  readonly root: string;
  /** `checked`: with the given key; `not checked`: there is a signature, but no key was given. */
  readonly signature: 'checked' | 'not checked' | 'none';
  /** Number of lines with facts. */
  readonly facts: number;
};

/** Reads all lines (without line feeds). @throws DamagedAttestation */
export async function checkFile(lines: AsyncIterable<string>, key: KeyObject | null): Promise<CheckedFile> {
  const hash = createHash('sha256');
  let head: string | null = null;
  let last: string | null = null;
  let facts = -1;
  for await (const line of lines) {
    if (head === null) {
      head = line;
      readHead(head);
      continue;
    }
    if (last !== null) hash.update(`${last}\n`);
    last = line;
    facts++;
  }
  if (head === null) throw new DamagedAttestation('is empty');
  const { at } = readHead(head);
  const root = readRoot(last);
  const found = hash.digest('hex');
  if (found !== root.root)
    throw new DamagedAttestation(`is damaged: the SHA-256 of its facts is ${found}, but its root is ${root.root}`);
  return { at, root: root.root, signature: checkSignature(head, root, key), facts };
}

function checkSignature(head: string, root: Root, key: KeyObject | null): CheckedFile['signature'] {
  const { signature, publicKey } = root;
  if (signature === undefined) {
    if (key === null) return 'none';
    throw new DamagedAttestation('is not signed, so the key of --key proves nothing');
  }
  if (key !== null) {
    if (isSignedBy(key, head, root)) return 'checked';
    throw new DamagedAttestation('has a signature that the given key did not make for this instant and root');
  }
  if (!isSignedBy(readOwnKey(publicKey), head, root))
    throw new DamagedAttestation('has a signature that does not match its instant and root');
  return 'not checked';
}

function readOwnKey(text: string | undefined): KeyObject {
  try {
    return createPublicKey({ key: Buffer.from(text ?? '', 'base64'), format: 'der', type: 'spki' });
  } catch {
    throw new DamagedAttestation('is damaged: the public key beside its signature cannot be read');
  }
}

function readHead(line: string): { readonly at: Instant } {
  const head = parse(line) as { attestation?: unknown; at?: unknown } | null;
  const at = typeof head?.at === 'string' ? Date.parse(head.at) : Number.NaN;
  if (typeof head?.attestation !== 'number' || !Number.isFinite(at))
    throw new DamagedAttestation('is not an attestation: its first line is not the head of one');
  if (head.attestation !== FORMAT)
    throw new DamagedAttestation(
      `has format ${head.attestation}, and this version of Chandler reads format ${FORMAT}; use a newer version`,
    );
  return { at };
}

function readRoot(line: string | null): Root {
  const root = parse(line ?? '') as Root | null;
  if (typeof root?.root === 'string' && /^[0-9a-f]{64}$/.test(root.root)) return root;
  throw new DamagedAttestation('is truncated: its last line has no root');
}

export function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}
