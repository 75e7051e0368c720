/** Decodes bytes to text, and cuts text into lines. */
import { NotReadable } from './not-readable.ts';

/** @throws NotReadable when it is not text */
export async function* textOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  for await (const chunk of bytes) {
    const text = asText(() => decoder.decode(chunk, { stream: true }));
    if (text !== '') yield text;
  }
  const rest = asText(() => decoder.decode());
  if (rest !== '') yield rest;
}

/** @throws NotReadable when it is not text */
export function asText(decode: () => string): string {
  try {
    return decode();
  } catch (error) {
    if (error instanceof TypeError) throw new NotReadable('is not UTF-8');
    throw error;
  }
}

/** A last line without a line end counts, too. */
export async function* linesOf(texts: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  for await (const text of texts) {
    const lines = (rest + text).split('\n');
    rest = lines.pop()!;
    yield* lines;
  }
  if (rest !== '') yield rest;
}
