/** Reads a body to its end or to its bound, decompresses gzip, and returns what failed. */
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';

const unzip = promisify(gunzip);

export type Body =
  | { readonly kind: 'whole'; readonly bytes: Buffer; readonly sha256: Uint8Array }
  /** The body has more than `maxBytes`, compressed or decompressed; `bytes` were read so far. */
  | { readonly kind: 'too large'; readonly bytes: number }
  /** The whole body arrived, but it cannot be decompressed. */
  | { readonly kind: 'garbled'; readonly bytes: number; readonly message: string }
  /** The connection ended or became silent before the end of the body. */
  | { readonly kind: 'cut'; readonly bytes: number; readonly error: unknown };

/** A body as it was sent, or the part that arrived. */
export type RawBody = { readonly kind: 'raw'; readonly bytes: Buffer } | Extract<Body, { kind: 'too large' | 'cut' }>;

/** Never throws. Stops reading after `maxBytes`. */
export async function readRawBody(
  chunks: AsyncIterable<Uint8Array> | readonly Uint8Array[],
  maxBytes: number,
): Promise<RawBody> {
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of chunks) {
      size += chunk.byteLength;
      // The return ends the loop, which destroys the stream and its connection.
      if (size > maxBytes) return { kind: 'too large', bytes: size };
      parts.push(chunk);
    }
  } catch (error) {
    return { kind: 'cut', bytes: size, error };
  }
  return { kind: 'raw', bytes: Buffer.concat(parts, size) };
}

/** Never throws. The decompressed body has at most `maxBytes`, too. */
export async function decompress(raw: RawBody, encoding: string | null, maxBytes: number): Promise<Body> {
  if (raw.kind !== 'raw') return raw;
  const { bytes } = raw;
  const coding = (encoding ?? 'identity').trim().toLowerCase();
  if (coding === 'identity' || coding === '') return whole(bytes);
  if (coding !== 'gzip' && coding !== 'x-gzip') {
    return {
      kind: 'garbled',
      bytes: bytes.length,
      message: `in the encoding "${coding}", which Chandler did not request`,
    };
  }
  // A `fetch` that decompresses automatically keeps the header. JSON never begins with gzip's two magic bytes.
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return whole(bytes);
  try {
    return whole(await unzip(bytes, { maxOutputLength: maxBytes, chunkSize: decompressedSize(bytes, maxBytes) }));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return { kind: 'too large', bytes: maxBytes };
    return { kind: 'garbled', bytes: bytes.length, message: 'not valid gzip' };
  }
}

/** The decompressed size, from gzip's last four bytes: decompressed in one piece, a body is never in memory twice while pieces are joined. */
function decompressedSize(gzipped: Buffer, maxBytes: number): number {
  const told = gzipped.length < 18 ? 0 : gzipped.readUInt32LE(gzipped.length - 4);
  return Math.max(Math.min(told, maxBytes), 1024) + 64;
}

function whole(bytes: Buffer): Body {
  return { kind: 'whole', bytes, sha256: hash('sha256', bytes, 'buffer') };
}
