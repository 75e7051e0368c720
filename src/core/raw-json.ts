/** Cuts parts out of a JSON text unchanged, with the white space, repeated keys and spellings of numbers that `JSON.parse` loses. */

/** The greatest accepted depth. No record of the API is this deep, and Postgres may refuse deeper texts. */
export const DEEPEST = 200;

/** The texts of the elements of a list. `text` must be a JSON list. */
export function rawElements(text: string): string[] {
  return rawParts(text).map(({ start, end }) => text.slice(start, end));
}

/**
 * The text of the member `name` of an object; null when there is none. Like `JSON.parse`, it takes the last member of that name. `text` must
 * be a JSON object.
 */
export function rawMember(text: string, name: string): string | null {
  const parts = rawParts(text);
  let found: string | null = null;
  for (let i = 0; i + 1 < parts.length; i += 2) {
    const key = text.slice(parts[i]!.start, parts[i]!.end);
    if (JSON.parse(key) === name) found = text.slice(parts[i + 1]!.start, parts[i + 1]!.end);
  }
  return found;
}

/** The depth of nested lists and objects. The text need not be valid JSON. */
export function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfText(text, at) - 1;
    else if (code === OPEN_LIST || code === OPEN_OBJECT) deepest = Math.max(deepest, ++depth);
    else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth--;
  }
  return deepest;
}

/** Matches texts that may contain a number that `withoutFalseZeros` changes. Few texts do, so few are read number by number. */
const MAY_HAVE_FALSE_ZERO = /[eE]-0*[1-9]\d\d|\.0{200}|-0(?:\.0+)?(?:[eE][-+]?\d+)?(?=[\s,\]}]|$)/;
const NUMBER = /(?<![-+.\w])-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y;

/**
 * The same JSON with two changes to its numbers (decision 80). A number that is too small for a double becomes a string, because `JSON.parse`
 * would turn it into 0. −0 becomes 0. A text that is not valid JSON stays invalid.
 */
export function withoutFalseZeros(text: string): string {
  if (!MAY_HAVE_FALSE_ZERO.test(text)) return text;
  let out = '';
  let copied = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfText(text, at) - 1;
      continue;
    }
    if (code !== MINUS && (code < DIGIT_0 || code > DIGIT_9)) continue;
    NUMBER.lastIndex = at;
    const number = NUMBER.exec(text)?.[0];
    if (number === undefined) continue;
    if (Number(number) === 0 && number !== '0') {
      const isTooSmall = /[1-9]/.test(number.replace(/[eE].*/, ''));
      out += text.slice(copied, at) + (isTooSmall ? JSON.stringify(`${shortened(number)} (too small)`) : '0');
      copied = at + number.length;
    }
    at += number.length - 1;
  }
  return out + text.slice(copied);
}

/** Cuts hundreds of zeros, which do not help a reader. */
function shortened(number: string): string {
  return number.length <= 20 ? number : `${number.slice(0, 10)}…${number.slice(-6)}`;
}

const QUOTE = 0x22;
const MINUS = 0x2d;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** The parts between the outermost brackets, split at commas and colons, without surrounding white space. */
function rawParts(text: string): { readonly start: number; readonly end: number }[] {
  const parts: { start: number; end: number }[] = [];
  let depth = 0;
  let start = -1;
  let end = -1;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code <= 0x20) continue;
    const isClose = code === CLOSE_LIST || code === CLOSE_OBJECT;
    if (isClose) depth--;
    if ((depth === 1 && (code === COMMA || code === COLON)) || (depth === 0 && isClose)) {
      if (start !== -1) parts.push({ start, end });
      start = -1;
    } else if (depth > 0 && start === -1) start = at;
    if (code === OPEN_LIST || code === OPEN_OBJECT) depth++;
    if (code === QUOTE) at = endOfText(text, at) - 1;
    end = at + 1;
  }
  return parts;
}

/** The index after the quotation mark that closes the one at `at`. */
function endOfText(text: string, at: number): number {
  for (let i = at + 1; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === BACKSLASH) i++;
    else if (code === QUOTE) return i + 1;
  }
  return text.length;
}
