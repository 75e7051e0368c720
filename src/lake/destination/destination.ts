/** The place to which files are written and from which they are read: a folder, or storage that can put, get, list and delete files by path. */
import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';

/** Takes the next bytes of a file. When it has resolved, the caller may reuse the array. */
export type ByteSink = (bytes: Uint8Array) => Promise<void>;

export type StoredFile = {
  /** Relative to the destination, with `/` between folders. */
  readonly path: string;
  readonly bytes: number;
};

export type Destination = {
  /** The name to show to users. */
  readonly name: string;
  /** The same for all names of the same place. */
  readonly place: string;
  /**
   * The file appears, or replaces the one before, when `write` has resolved and all bytes are safe. When `write` rejects, nothing has changed.
   * Resolves to the result of `write`.
   */
  put<T>(path: string, write: (sink: ByteSink) => Promise<T>): Promise<T>;
  /** The bytes from `from` to `to` (exclusive), or all; null: there is no such file. */
  get(path: string, range?: { readonly from: number; readonly to: number }): Promise<AsyncIterable<Uint8Array> | null>;
  /** All complete files, in any order. */
  list(): AsyncIterable<StoredFile>;
  /** Does nothing when there is no such file. */
  delete(path: string): Promise<void>;
  /** Removes the incomplete files that killed writers left. Nobody may write meanwhile. */
  sweep(): Promise<void>;
};

/** Whether this is a file that file managers and editors leave beside other files. No reader of data opens it. */
export function isHiddenFile(path: string): boolean {
  return /(^|\/)\.[^/]*$/.test(path);
}

/** The text of a small file, or of a range of a file; null: there is no such file. */
export async function readText(
  destination: Destination,
  path: string,
  range?: { readonly from: number; readonly to: number },
): Promise<string | null> {
  const chunks = await destination.get(path, range);
  // `text` would drop a byte order mark, and a changed file would count as unchanged.
  return chunks === null ? null : (await buffer(chunks)).toString('utf8');
}

/** The SHA-256 of a file, in hex; null: there is no such file. */
export async function hashOf(destination: Destination, path: string): Promise<string | null> {
  const chunks = await destination.get(path);
  if (chunks === null) return null;
  const hash = createHash('sha256');
  for await (const chunk of chunks) hash.update(chunk);
  return hash.digest('hex');
}

/** Reads a whole range of a file into memory. @throws Error when the file is gone, or shorter */
export async function readRange(
  destination: Destination,
  path: string,
  range: { readonly from: number; readonly to: number },
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks = await destination.get(path, range);
  if (chunks === null) throw new Error(`${path} no longer exists`);
  const bytes = new Uint8Array(range.to - range.from);
  let at = 0;
  for await (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  if (at < bytes.length) throw new Error(`${path} is shorter than ${range.to} bytes`);
  return bytes;
}
