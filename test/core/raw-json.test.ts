import fc from 'fast-check';
import { expect, test } from 'vitest';
import { depthOf, rawElements, rawMember, withoutFalseZeros } from '../../src/core/raw-json.ts';

test('elements and members of JSON are returned exactly as the text has them', () => {
  expect(rawElements(' [ 1.50 , {"a" : [1 , 2]},"x,]\\"" ,null , [ ] ]\n')).toEqual([
    '1.50',
    '{"a" : [1 , 2]}',
    '"x,]\\""',
    'null',
    '[ ]',
  ]);
  expect([rawElements('[]'), rawElements(' [ ] ')]).toEqual([[], []]);
  const object = '{ "data" : [1e-07 ], "me\\u0074a": {"a":"}"} , "data":{ } }';
  expect([rawMember(object, 'data'), rawMember(object, 'meta'), rawMember(object, 'a')]).toEqual([
    '{ }',
    '{"a":"}"}',
    null,
  ]);
  expect([depthOf('1'), depthOf('"[["'), depthOf('[{"a":[]},[]]')]).toEqual([0, 0, 3]);
});

test('the parts of any JSON mean the same as in the whole', () => {
  const spaced = (value: unknown) => fc.constantFrom(0, 1, 2).map((width) => JSON.stringify(value, null, width));
  fc.assert(
    fc.property(
      fc
        .array(fc.jsonValue({ maxDepth: 4 }), { maxLength: 6 })
        .chain((value) => fc.tuple(fc.constant(value), spaced(value))),
      ([value, text]) => {
        expect(rawElements(text).map((part) => JSON.parse(part))).toEqual(JSON.parse(JSON.stringify(value)));
      },
    ),
  );
  fc.assert(
    fc.property(
      fc
        .dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 5 })
        .chain((v) => fc.tuple(fc.constant(v), spaced(v))),
      ([value, text]) => {
        for (const key of Object.keys(value)) {
          expect(JSON.parse(rawMember(text, key)!)).toEqual(JSON.parse(JSON.stringify(value[key])));
        }
      },
    ),
  );
});

test.each([
  ['{"a":1e-400}', '{"a":"1e-400 (too small)"}'],
  ['[-2.5E-0999, 1]', '["-2.5E-0999 (too small)", 1]'],
  [`[0.${'0'.repeat(330)}7]`, `["0.${'0'.repeat(8)}…${'0'.repeat(5)}7 (too small)"]`],
  ['[-0,-0.00 ,-0e-400]', '[0,0 ,0]'],
  ['-0', '0'],
  // These stay: zeros, numbers that a double can hold, and strings that look like numbers.
  ['[0,0.0,0e-500,5e-324,1e-300,-0.5,"-0,","1e-400","\\"-0,"]', null],
  // A text that is no JSON stays no JSON.
  ['[--0]', null],
  ['[01e-400]', '[01e-400]'],
  ['[-0', '[0'],
  ['["-0,', null],
  ['[-0,x1e-400]', '[0,x1e-400]'],
] as const)('no number of %.40s silently becomes 0', (text, expected) => {
  const isJson = (some: string) => {
    try {
      JSON.parse(some);
      return true;
    } catch {
      return false;
    }
  };
  const found = withoutFalseZeros(text);
  if (expected !== null || !isJson(text)) expect(found).toBe(expected ?? text);
  else expect(JSON.parse(found)).toEqual(JSON.parse(text));
  expect(isJson(found)).toBe(isJson(text));
});

test('replacing false zeros does not change JSON that has none', () => {
  const zeroed = (text: string) => JSON.parse(text, (_, value) => (Object.is(value, -0) ? 0 : value)) as unknown;
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.jsonValue(), fc.constantFrom('-0', '-0,', '1e-400'))), (value) => {
      const text = `${JSON.stringify(value).slice(0, -1)}${value.length > 0 ? ',' : ''}-0]`;
      expect(JSON.parse(withoutFalseZeros(text))).toEqual(zeroed(text));
    }),
  );
});
