/**
 * Parses JSON from bytes. A long list is parsed lazily, some elements at a time. All tickers are 37 MB: at once, they would need twice as
 * much again for one string, and half as much for objects that are soon dropped.
 */

import { withoutFalseZeros } from '../core/raw-json.ts';

const LONG = 4 * 1024 * 1024;
const STRETCH = 32 * 1024;

const SQUARE_OPEN = 0x5b;
const ELEMENT_ENDS = '},';

/** The elements of a long list. Each iteration parses it again. @throws SyntaxError during the iteration, where the list is broken. */
export class LongList implements Iterable<unknown> {
  readonly #bytes: Buffer;
  readonly #open: number;
  readonly #stretch: number;

  /** `open` is the index of the opening bracket. */
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
 * The value as `JSON.parse` returns it, with two differences: a list of 4 MB or more becomes a `LongList`, which throws its errors during the
 * iteration; and no number silently becomes 0 (`withoutFalseZeros`). Undefined when it is not JSON. A byte-order mark is not an error.
 */
export function parseJson(bytes: Buffer, { long = LONG, stretch = STRETCH } = {}): unknown {
  const start = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  if (bytes.length >= long) {
    const first = firstOf(bytes, start);
    if (bytes[first] === SQUARE_OPEN) return new LongList(bytes, first, stretch);
  }
  return parseJsonText(bytes.toString('utf8', start));
}

/** The same for a text, without `LongList`. */
export function parseJsonText(text: string): unknown {
  try {
    return JSON.parse(withoutFalseZeros(text)) as unknown;
  } catch {
    return undefined;
  }
}

/**
 * Cuts the list where an element may end. After a cut inside a string or a nested list, the text between two brackets is not valid JSON; the
 * function then tries the next possible end, in growing steps.
 */
function* stretchesOf(bytes: Buffer, open: number, stretch: number): Generator<unknown[]> {
  let from = open + 1;
  let misses = 0;
  for (let look = from + stretch; ; ) {
    const end = bytes.indexOf(ELEMENT_ENDS, look);
    if (end === -1) break;
    const elements = parseList(`[${bytes.toString('utf8', from, end + 1)}]`);
    if (elements === null) {
      look = end + 2 ** misses++;
      continue;
    }
    yield elements;
    misses = 0;
    from = end + ELEMENT_ENDS.length;
    look = from + stretch;
  }
  const rest = parseList(`[${bytes.toString('utf8', from)}`);
  // Between the last comma and the bracket there must be an element.
  if (rest === null || (rest.length === 0 && from > open + 1)) {
    throw new SyntaxError('the list is broken off, or goes on after its end');
  }
  yield rest;
}

function parseList(text: string): unknown[] | null {
  return (parseJsonText(text) as unknown[] | undefined) ?? null;
}

/** The index of the first byte from `at` on that is not white space. */
function firstOf(bytes: Buffer, at: number): number {
  let i = at;
  while (bytes[i] === 0x20 || bytes[i] === 0x0a || bytes[i] === 0x0d || bytes[i] === 0x09) i++;
  return i;
}
