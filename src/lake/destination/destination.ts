/** Where files go, and come from: a folder, or whatever else can put, get, list and delete files by their paths. */

/** Takes the next bytes of a file. When it has resolved, the caller may use the array again. */
export type ByteSink = (bytes: Uint8Array) => Promise<void>;

export type StoredFile = {
  /** Below the destination, with `/` between folders. */
  readonly path: string;
  readonly bytes: number;
};

export type Destination = {
  /** For readers. */
  readonly name: string;
  /** The same for every way to name the same place. */
  readonly place: string;
  /**
   * The file appears, or takes the place of the one before, when `write` has resolved and all of it is safe; when `write` rejects, nothing has
   * changed. Resolves to what `write` resolved to.
   */
  put<T>(path: string, write: (sink: ByteSink) => Promise<T>): Promise<T>;
  /** The bytes from `from` to `to` (exclusive), or all; null: there is no such file. */
  get(path: string, range?: { readonly from: number; readonly to: number }): Promise<AsyncIterable<Uint8Array> | null>;
  /** All files that are whole, in any order. */
  list(): AsyncIterable<StoredFile>;
  /** Does nothing when there is no such file. */
  delete(path: string): Promise<void>;
  /** Removes what killed writers left that is not whole. Nobody may be writing meanwhile. */
  sweep(): Promise<void>;
};

/** What file managers and editors leave beside other files: no reader of data looks at it. */
export function isHiddenFile(path: string): boolean {
  return /(^|\/)\.[^/]*$/.test(path);
}

/** A whole part of a file, in memory. @throws Error when the file is gone, or shorter */
export async function readRange(
  destination: Destination,
  path: string,
  range: { readonly from: number; readonly to: number },
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks = await destination.get(path, range);
  if (chunks === null) throw new Error(`${path} is gone`);
  const bytes = new Uint8Array(range.to - range.from);
  let at = 0;
  for await (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  if (at < bytes.length) throw new Error(`${path} is shorter than ${range.to} bytes`);
  return bytes;
}
