import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LongList, parseJson } from '../../src/upstream/json.ts';

function whole(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
/** Parses in stretches as if every text were long. */
function inStretches(text: string, stretch: number): unknown {
  const value = parseJson(Buffer.from(text), { long: 0, stretch });
  if (!(value instanceof LongList)) return value;
  try {
    return [...value];
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

describe('a long list', () => {
  test('is parsed in stretches to the same values as in one go', () => {
    const record = fc.dictionary(fc.string(), fc.oneof(fc.jsonValue({ stringUnit: 'binary' }), fc.constant('},')));
    const lists = fc.array(fc.oneof(record, fc.jsonValue()));
    fc.assert(
      fc.property(lists, fc.nat(20), fc.constantFrom(undefined, 1, '\t'), (list, stretch, space) => {
        const text = ` ${JSON.stringify(list, null, space)}\r\n`;
        expect(inStretches(text, stretch)).toEqual(whole(text));
      }),
      { numRuns: 2_000 },
    );
  });

  test('that is broken anywhere is rejected as JSON', () => {
    const parts = fc.array(
      fc.constantFrom('[', ']', '{', '}', '{},', '},', ',', ':', '"', '\\', 'a', '1', 'null', ' ', '"a":1', '{}'),
    );
    fc.assert(
      fc.property(parts, fc.nat(4), fc.boolean(), (some, stretch, closed) => {
        const text = `[${some.join('')}${closed ? ']' : ''}`;
        expect(inStretches(text, stretch)).toEqual(whole(text));
      }),
      { numRuns: 20_000 },
    );
  });

  test.each([
    '[1,]',
    '[,1]',
    '[1,,2]',
    '[1}',
    '[1]]',
    '[1] x',
    '[1',
    '["',
    '["\\',
    '[',
    '',
    ' ',
    '[]',
    ' [ ] ',
    '{"a":[1]}',
  ])('%j', (text) => {
    expect(inStretches(text, 0)).toEqual(whole(text));
  });

  test('can be read more than once, and reading may stop before its end', () => {
    const list = parseJson(Buffer.from('[1,2,3]'), { long: 0, stretch: 0 }) as LongList;
    const [first] = list;
    expect([first, ...list, ...list]).toEqual([1, 1, 2, 3, 1, 2, 3]);
  });

  test('contains no number that silently became 0', () => {
    const list = [1, 2, 3].map((n) => `{"a":${n},"b":[1e-40${n},-0]}`).join(',');
    const expected = [1, 2, 3].map((n) => ({ a: n, b: [`1e-40${n} (too small)`, 0] }));
    expect(inStretches(`[${list}]`, 4)).toEqual(expected);
    expect(parseJson(Buffer.from(`[${list}]`))).toEqual(expected);
  });

  test('may begin with a byte-order mark', () => {
    expect(inStretches('\ufeff[1,2]', 0)).toEqual([1, 2]);
  });
});
