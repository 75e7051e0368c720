import { expect, it } from 'vitest';
import { basisHeaders, basisOf, standingOn } from '../../src/contract/basis.ts';

const asOf = Date.UTC(2024, 0, 2, 3, 4, 5);

it('tells in headers what an answer stands on, and nothing where the source does not say', () => {
  expect(basisHeaders(standingOn([], { asOf, firstMissing: null }))).toEqual({
    'X-Chandler-Coverage': 'full',
    'X-Chandler-As-Of': '2024-01-02T03:04:05Z',
  });
  expect(basisHeaders(standingOn([], { asOf, firstMissing: Date.UTC(2024, 0, 1) }))).toEqual({
    'X-Chandler-Coverage': 'partial; first-missing=2024-01-01T00:00:00Z',
    'X-Chandler-As-Of': '2024-01-02T03:04:05Z',
  });
  expect(basisHeaders(standingOn([], { asOf: null, firstMissing: null }))).toEqual({ 'X-Chandler-Coverage': 'none' });
  expect(basisHeaders([])).toEqual({});
  expect([basisOf(null), basisOf([])]).toEqual([null, null]);
});
