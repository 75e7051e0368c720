/** Reads a file in decompressed pieces of bytes. */
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { NotReadable } from '../../format/not-readable.ts';
import type { TableFile } from './table.ts';

/** The JavaScript engine stores larger texts separately, which costs more. */
const PIECE_BYTES = 1 << 16;

/** Yields pieces that become texts of a good size. @throws NotReadable when the file cannot be decompressed */
export async function* bytesOf({ destination, path, isGzip }: TableFile): AsyncGenerator<Uint8Array> {
  const bytes = await destination.get(path);
  if (bytes === null) throw new NotReadable('no longer exists');
  const source = isGzip ? gunzipped(bytes) : bytes;
  try {
    for await (const bytes of source)
      for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
  } catch (error) {
    const { code = '' } = error as { readonly code?: string };
    if (code.startsWith('Z_') || code === 'ERR_STREAM_PREMATURE_CLOSE')
      throw new NotReadable(`is not a readable gzip file (${(error as Error).message})`);
    throw error;
  }
}

/** An error of either stream ends both. So does a reader that stops early: then the file is closed. */
function gunzipped(bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const gunzip = createGunzip({ chunkSize: PIECE_BYTES });
  // The reader of the stream gets its errors.
  return pipeline(Readable.from(bytes, { objectMode: false }), gunzip, () => undefined);
}
