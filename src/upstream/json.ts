/**
 * JSON from bytes. A long list is read in stretches of its elements, when they are asked for: all tickers are 37 MB, and would need
 * that twice more as one text, and half as much again as objects that nobody keeps.
 */

const LONG = 4 * 1024 * 1024;
const STRETCH = 32 * 1024;

const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c];
const [SQUARE_OPEN, SQUARE_CLOSE, CURLY_OPEN, CURLY_CLOSE] = [0x5b, 0x5d, 0x7b, 0x7d];

/** The elements of a long list. To iterate again is to read it again. @throws SyntaxError on the way, where it is broken. */
export class LongList implements Iterable<unknown> {
  readonly #bytes: Buffer;
  readonly #open: number;
  readonly #stretch: number;

  /** `open`: where its bracket is. */
  constructor(bytes: Buffer, open: number, stretch: number) {
    this.#bytes = bytes;
    this.#open = open;
    this.#stretch = stretch;
  }

  *[Symbol.iterator](): Iterator<unknown> {
    for (const elements of stretchesOf(this.#bytes, this.#open, this.#stretch)) yield* elements;
  }
}

/**
 * The value, exactly as `JSON.parse` has it, but for long lists: whether those are right to their end is seen when they are read.
 * Undefined when it is not JSON. A byte-order mark is not an error.
 */
export function parseJson(bytes: Buffer, { long = LONG, stretch = STRETCH } = {}): unknown {
  const start = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  if (bytes.length >= long) {
    const first = firstOf(bytes, start);
    if (bytes[first] === SQUARE_OPEN) return new LongList(bytes, first, stretch);
  }
  try {
    return JSON.parse(bytes.toString('utf8', start)) as unknown;
  } catch {
    return undefined;
  }
}

/** What is inside the elements is for `JSON.parse` to judge; here only strings and depth count. */
function* stretchesOf(bytes: Buffer, open: number, stretch: number): Generator<unknown[]> {
  let depth = 0;
  let from = open + 1;
  const elements = (to: number) => JSON.parse(`[${bytes.toString('utf8', from, to)}]`) as unknown[];
  for (let i = from; i < bytes.length; i++) {
    const byte = bytes[i]!;
    if (byte === QUOTE) {
      i = endOfString(bytes, i);
    } else if (byte === CURLY_OPEN || byte === SQUARE_OPEN) {
      depth++;
    } else if (byte === CURLY_CLOSE || byte === SQUARE_CLOSE) {
      if (--depth >= 0) continue;
      if (byte === CURLY_CLOSE || firstOf(bytes, i + 1) < bytes.length) break;
      // Nothing between the last comma and the bracket.
      if (firstOf(bytes, from) === i && from > open + 1) break;
      yield elements(i);
      return;
    } else if (byte === COMMA && depth === 0 && i - from >= stretch) {
      // Nothing before the comma would go unnoticed: an empty list is a list.
      if (firstOf(bytes, from) === i) break;
      yield elements(i);
      from = i + 1;
    }
  }
  throw new SyntaxError('the list is broken off, or goes on after its end');
}

/** Where the string ends that begins at `at`; past the end when it does not. */
function endOfString(bytes: Buffer, at: number): number {
  let i = at + 1;
  while (i < bytes.length && bytes[i] !== QUOTE) i += bytes[i] === BACKSLASH ? 2 : 1;
  return i;
}

/** The first byte from `at` on that is no white space. */
function firstOf(bytes: Buffer, at: number): number {
  let i = at;
  while (bytes[i] === 0x20 || bytes[i] === 0x0a || bytes[i] === 0x0d || bytes[i] === 0x09) i++;
  return i;
}
