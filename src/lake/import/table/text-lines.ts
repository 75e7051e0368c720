/** The text of a file, decompressed, in pieces; and its lines. */
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { NotReadable } from '../../format/not-readable.ts';
import type { TableFile } from './table.ts';

/** Larger than what a file gives at once: each piece is decoded as one text. */
const PIECE_BYTES = 1 << 18;

/** @throws NotReadable when it is not text */
export async function* textOf({ destination, path, isGzip }: TableFile): AsyncGenerator<string> {
  const bytes = await destination.get(path);
  if (bytes === null) throw new NotReadable('is gone');
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const source: AsyncIterable<Uint8Array> = isGzip
    ? Readable.from(bytes, { objectMode: false }).pipe(createGunzip({ chunkSize: PIECE_BYTES }))
    : bytes;
  try {
    for await (const chunk of source) {
      const text = decoder.decode(chunk, { stream: true });
      if (text !== '') yield text;
    }
    const rest = decoder.decode();
    if (rest !== '') yield rest;
  } catch (error) {
    if (error instanceof TypeError) throw new NotReadable('is not UTF-8');
    const { code = '' } = error as { readonly code?: string };
    if (code.startsWith('Z_') || code === 'ERR_STREAM_PREMATURE_CLOSE')
      throw new NotReadable(`is no gzip file that can be read (${(error as Error).message})`);
    throw error;
  }
}

/** A last line that does not end is one, too. */
export async function* linesOf(file: TableFile): AsyncGenerator<string> {
  let rest = '';
  for await (const text of textOf(file)) {
    const lines = (rest + text).split('\n');
    rest = lines.pop()!;
    yield* lines;
  }
  if (rest !== '') yield rest;
}
