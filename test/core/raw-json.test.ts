import fc from 'fast-check';
import { expect, test } from 'vitest';
import { depthOf, rawElements, rawMember } from '../../src/core/raw-json.ts';

test('elements and members are given as they stand in the text', () => {
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

test('whatever the JSON, the parts mean what the whole means', () => {
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
