/** Reads a manifest line by line, and checks that it is complete and unchanged. */
import { createHash } from 'node:crypto';
import { type Destination, readText } from '../destination/destination.ts';
import { linesOf } from '../format/text-lines.ts';
import {
  LISTS,
  type List,
  MANIFEST_FILE,
  MANIFEST_FORMAT,
  type ManifestElement,
  type ManifestHead,
} from './manifest.ts';

/** The manifest cannot be trusted. The message completes a sentence that begins with its name. */
export class DamagedManifest extends Error {
  override readonly name = 'DamagedManifest';
}

type ReadManifest = {
  readonly head: ManifestHead;
  /** In the order of the file. The elements can be trusted only when all of them were read without an error. */
  readonly elements: AsyncGenerator<ManifestElement, { readonly root: string }>;
};

/** Null: there is no manifest. @throws DamagedManifest, also while its elements are read */
export async function readManifest(destination: Destination): Promise<ReadManifest | null> {
  const chunks = await destination.get(MANIFEST_FILE);
  if (chunks === null) return null;
  const hash = createHash('sha256');
  const lines = linesOf(decoded(chunks));
  const first = await lines.next();
  if (first.done) throw new DamagedManifest('is empty');
  const head = readHead(first.value);
  return { head, elements: elements(first.value, lines, hash) };
}

/** Several times the longest possible first line of a lake's manifest. */
const HEAD_BYTES = 65_536;

/** Reads only the head of a manifest that may be large. Null: there is none. @throws DamagedManifest */
export async function readManifestHead(destination: Destination): Promise<ManifestHead | null> {
  const text = await readText(destination, MANIFEST_FILE, { from: 0, to: HEAD_BYTES });
  if (text === null) return null;
  if (!text.includes('\n')) throw new DamagedManifest('is not a manifest of an export');
  return readHead(text.slice(0, text.indexOf('\n')));
}

async function* elements(
  first: string,
  lines: AsyncIterable<string>,
  hash: ReturnType<typeof createHash>,
): AsyncGenerator<ManifestElement, { readonly root: string }> {
  hash.update(`${first}\n`);
  let list: List | null = null;
  let root: string | null = null;
  for await (const line of lines) {
    if (root !== null) throw new DamagedManifest('has lines after its root');
    root = /^"root":"([0-9a-f]{64})"}$/.exec(line)?.[1] ?? null;
    if (root !== null) continue;
    hash.update(`${line}\n`);
    const opened = /^"(\w+)":\[(\],?)?$/.exec(line)?.[1];
    if (opened !== undefined) {
      list = LISTS.find((name) => name === opened) ?? null;
      if (list === null) throw new DamagedManifest(`has a list ${opened} that this version of Chandler does not know`);
    } else if (line !== '],' && line !== ']') {
      if (list === null) throw new DamagedManifest('has a line outside its lists');
      yield { list, element: parse(line.replace(/,$/, '')) } as ManifestElement;
    }
  }
  const found = hash.digest('hex');
  if (root === null) throw new DamagedManifest('is truncated: it has no root');
  if (root !== found)
    throw new DamagedManifest(`is damaged: the SHA-256 of its lines is ${found}, but its root is ${root}`);
  return { root };
}

function readHead(line: string): ManifestHead {
  if (!/^\{"manifest":\d+,/.test(line)) throw new DamagedManifest('is not a manifest of an export');
  const head = parse(`${line.replace(/,$/, '')}}`) as { readonly manifest: number } & ManifestHead;
  if (head.manifest !== MANIFEST_FORMAT)
    throw new DamagedManifest(
      `has format ${head.manifest}, and this version of Chandler reads format ${MANIFEST_FORMAT}; use a newer version`,
    );
  return head;
}

function parse(text: string): object {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null) return parsed;
  } catch {
    // The error is thrown below.
  }
  throw new DamagedManifest(`is damaged: it has a line that is not JSON: ${text.slice(0, 80)}`);
}

async function* decoded(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const chunk of chunks) yield decoder.decode(chunk, { stream: true });
}
