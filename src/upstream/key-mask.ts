/**
 * Hides the API key in responses of the upstream: the whole key, parts of it, and both in other encodings. If the upstream repeats a request in
 * an error, the key must not get into messages, logs and tables.
 */
import { createMask } from '../log.ts';

type KeyMask = {
  text(text: string): string;
  /** The same buffer when there is nothing to hide. */
  bytes(bytes: Buffer): Buffer;
};

const MASK = '[key]';
/** The shortest part to hide. Services show fewer characters of a key on purpose ("the key cHJv… is unknown"), and they may be a word. */
const LEAST_PART = 8;
/** A part this long is hidden even if it could be words. */
const LONG_PART = 16;

/** The key, or a part of it, in one spelling. */
type Spelling = {
  readonly bytes: Buffer;
  /** The shortest part to hide: the number of bytes that spell `LEAST_PART` characters of the key. */
  readonly least: number;
  /** True when the bytes are the characters of the key, so that a short part may also be a word or a number in the data. */
  readonly isPlain: boolean;
};

export function createKeyMask(key: string | null): KeyMask {
  const whole = createMask(key === null ? [] : [key], MASK);
  // A short key, or a number, may be in the data by chance.
  if (key === null || key.length < LEAST_PART || isNumber(key)) return { text: whole, bytes: (bytes) => bytes };
  const find = createFinder(spellingsOf(key));
  const bytes = (given: Buffer): Buffer => {
    const found = find(given);
    if (found.length === 0) return given;
    const parts: Buffer[] = [];
    let at = 0;
    for (const { from, to } of found) {
      parts.push(given.subarray(at, from), Buffer.from(MASK));
      at = to;
    }
    return Buffer.concat([...parts, given.subarray(at)]);
  };
  const text = (given: string): string => {
    const clean = whole(given);
    const before = Buffer.from(clean);
    const after = bytes(before);
    return after === before ? clean : after.toString('utf8');
  };
  return { text, bytes };
}

function spellingsOf(key: string): Spelling[] {
  const plain = [key, key.toLowerCase(), key.toUpperCase()].map((text) => spelling(text, LEAST_PART, true));
  const percent = encodeURIComponent(key);
  const codes = [...key].map((character) => character.charCodeAt(0).toString(16).padStart(2, '0'));
  const hex = codes.join('');
  const each = (before: string, after = '') => codes.map((code) => before + code + after).join('');
  const coded = [
    spelling(percent, LEAST_PART, true),
    spelling(
      percent.replaceAll(/%../g, (code) => code.toLowerCase()),
      LEAST_PART,
      true,
    ),
    spelling(JSON.stringify(key).slice(1, -1), LEAST_PART, true),
    spelling(hex, 2 * LEAST_PART),
    spelling(hex.toUpperCase(), 2 * LEAST_PART),
    spelling(each('%'), 3 * LEAST_PART),
    spelling(each('%').toUpperCase(), 3 * LEAST_PART),
    spelling(each('\\u00'), 6 * LEAST_PART),
    spelling(each('&#x', ';'), 6 * LEAST_PART),
  ];
  // In Base64, a text has three forms, depending on the number of bytes before it (`Bearer `, `user:`).
  const base64 = [0, 1, 2].flatMap((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), Buffer.from(key)]).toString('base64');
    // The first and the last characters depend on the bytes next to the key.
    const own = encoded.slice(Math.ceil((before * 8) / 6), Math.floor(((before + key.length) * 8) / 6));
    return [own, own.replaceAll('+', '-').replaceAll('/', '_')];
  });
  return [...plain, ...coded, ...base64.map((text) => spelling(text, Math.ceil((LEAST_PART * 8) / 6) - 1))];
}

function spelling(text: string, least: number, isPlain = false): Spelling {
  return { bytes: Buffer.from(text), least, isPlain };
}

type Found = { readonly from: number; readonly to: number };

const GRAM = 4;
/** Each part of at least `LEAST_PART` bytes contains a gram (four bytes) that begins at a multiple of this. */
const STEP = LEAST_PART - GRAM + 1;

/** Finds all parts in one pass, because a body may have tens of megabytes. The parts are in order and do not overlap. */
function createFinder(spellings: readonly Spelling[]): (bytes: Buffer) => Found[] {
  const grams = new Map<number, { readonly of: Spelling; readonly at: number }[]>();
  /** Whether a gram with this hash may exist. This test excludes most grams of a body. */
  const mayBe = new Uint8Array(1 << 16);
  for (const of of spellings) {
    for (let at = 0; at + GRAM <= of.bytes.length; at++) {
      const gram = of.bytes.readInt32LE(at);
      grams.set(gram, [...(grams.get(gram) ?? []), { of, at }]);
      mayBe[hashOf(gram)] = 1;
    }
  }
  return (bytes) => {
    const found: Found[] = [];
    let end = 0;
    for (let i = 0; i + GRAM <= bytes.length; i += STEP) {
      const gram = bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24);
      if (mayBe[hashOf(gram)] === 0 || i < end) continue;
      for (const { of, at } of grams.get(gram) ?? []) {
        const part = extend(bytes, i, of, at, end);
        if (part === null || part.to <= end) continue;
        if (part.from < end) found[found.length - 1] = { from: found.at(-1)!.from, to: part.to };
        else found.push(part);
        end = part.to;
      }
    }
    return found;
  };
}

/** The longest part of the spelling around position `i`, which holds its byte number `at`; null when the part need not be hidden. */
function extend(bytes: Buffer, i: number, { bytes: own, least, isPlain }: Spelling, at: number, begin: number) {
  let before = 0;
  while (i - before > begin && at - before > 0 && bytes[i - before - 1] === own[at - before - 1]) before++;
  let after = GRAM;
  while (i + after < bytes.length && at + after < own.length && bytes[i + after] === own[at + after]) after++;
  const length = before + after;
  const isHidden = length === own.length || (length >= least && (!isPlain || isTelling(own, at - before, at + after)));
  return isHidden ? { from: i - before, to: i + after } : null;
}

/** True for a part that is neither a word nor a number. A key may contain "bitcoin-", and the data contains it, too. */
function isTelling(own: Buffer, from: number, to: number): boolean {
  const part = own.toString('latin1', from, to);
  if (isNumber(part)) return false;
  const kinds = [/[a-z]/, /[A-Z]/, /\d/].filter((kind) => kind.test(part)).length;
  return kinds > 1 || part.length >= LONG_PART;
}

function isNumber(text: string): boolean {
  return /^[\d.eE+-]+$/.test(text);
}

function hashOf(gram: number): number {
  return Math.imul(gram, 0x9e3779b1) >>> 16;
}
