/** Reads a body to its end or to its bound, undoes gzip, and says which of the ways to go wrong it went. */
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';

const unzip = promisify(gunzip);

export type Body =
  | { readonly kind: 'whole'; readonly bytes: Buffer; readonly sha256: Uint8Array }
  /** More than `maxBytes`, on the wire or unpacked; `bytes` read so far. */
  | { readonly kind: 'too large'; readonly bytes: number }
  /** All of it arrived, and it cannot be unpacked. */
  | { readonly kind: 'garbled'; readonly bytes: number; readonly message: string }
  /** The connection ended, or fell silent, before the body did. */
  | { readonly kind: 'cut'; readonly bytes: number; readonly error: unknown };

/** A body as it was sent, or how far it came. */
export type Packed = { readonly kind: 'packed'; readonly bytes: Buffer } | Extract<Body, { kind: 'too large' | 'cut' }>;

/** Never throws. Holds at most `maxBytes` of the packed and of the unpacked body, whatever their ratio. */
export async function readBody(
  chunks: AsyncIterable<Uint8Array>,
  encoding: string | null,
  maxBytes: number,
): Promise<Body> {
  return unpack(await collect(chunks, maxBytes), encoding, maxBytes);
}

/** Never throws. */
export async function collect(chunks: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Packed> {
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const chunk of chunks) {
      size += chunk.byteLength;
      // Leaving the loop destroys the stream, and with it the connection.
      if (size > maxBytes) return { kind: 'too large', bytes: size };
      parts.push(chunk);
    }
  } catch (error) {
    return { kind: 'cut', bytes: size, error };
  }
  return { kind: 'packed', bytes: Buffer.concat(parts, size) };
}

/** Never throws. What is unpacked has at most `maxBytes`, too. */
export async function unpack(read: Packed, encoding: string | null, maxBytes: number): Promise<Body> {
  if (read.kind !== 'packed') return read;
  const packed = read.bytes;
  const coding = (encoding ?? 'identity').trim().toLowerCase();
  if (coding === 'identity' || coding === '') return whole(packed);
  if (coding !== 'gzip' && coding !== 'x-gzip') {
    return { kind: 'garbled', bytes: packed.length, message: `in the encoding "${coding}", which was not asked for` };
  }
  // A `fetch` that unpacks by itself leaves the header in place; JSON never begins with gzip's two magic bytes.
  if (packed[0] !== 0x1f || packed[1] !== 0x8b) return whole(packed);
  try {
    return whole(await unzip(packed, { maxOutputLength: maxBytes, chunkSize: sizeUnpacked(packed, maxBytes) }));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return { kind: 'too large', bytes: maxBytes };
    return { kind: 'garbled', bytes: packed.length, message: 'not the gzip it says it is' };
  }
}

/** In one piece when the last four bytes tell its size, as they should: in many, it would be in memory twice while they are joined. */
function sizeUnpacked(packed: Buffer, maxBytes: number): number {
  const told = packed.length < 18 ? 0 : packed.readUInt32LE(packed.length - 4);
  return Math.max(Math.min(told, maxBytes), 1024) + 64;
}

function whole(bytes: Buffer): Body {
  return { kind: 'whole', bytes, sha256: hash('sha256', bytes, 'buffer') };
}
