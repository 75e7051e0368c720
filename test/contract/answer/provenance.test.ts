import { describe, expect, it } from 'vitest';
import {
  basisHeaders,
  basisOf,
  historyBasis,
  NOTHING,
  partAsOf,
  standingOn,
  together,
  wholeAsOf,
} from '../../../src/contract/answer/provenance.ts';

const asOf = Date.UTC(2024, 0, 2, 3, 4, 5);

it('tells in headers what an answer stands on, and nothing where the source does not say', () => {
  const seen = { 'X-Chandler-As-Of': '2024-01-02T03:04:05Z' };
  const headers = (basis: Parameters<typeof standingOn>[1]) => basisHeaders(standingOn([], basis));
  expect(headers(wholeAsOf(asOf))).toEqual({ 'X-Chandler-Coverage': 'full', ...seen });
  expect(headers({ ...partAsOf(asOf), firstMissing: Date.UTC(2024, 0, 1) })).toEqual({
    'X-Chandler-Coverage': 'partial; first-missing=2024-01-01T00:00:00Z',
    ...seen,
  });
  expect(headers(partAsOf(asOf))).toEqual({ 'X-Chandler-Coverage': 'partial', ...seen });
  expect(headers(partAsOf(null))).toEqual({ 'X-Chandler-Coverage': 'partial' });
  expect(headers(wholeAsOf(null))).toEqual({ 'X-Chandler-Coverage': 'none' });
  expect(basisHeaders([])).toEqual({});
  expect([basisOf(null), basisOf([])]).toEqual([null, null]);
});

describe('a history', () => {
  const of = (known: { from: number; to: number }[], more: { hasRows?: boolean; to?: number } = {}) =>
    historyBasis({ asked: { from: 10, to: more.to ?? 20 }, known, hasRows: more.hasRows ?? false, asOf });

  it('is full when every slot is known, and when there is none', () => {
    expect(of([{ from: 0, to: 30 }])).toEqual(wholeAsOf(asOf));
    expect(of([], { to: 10 })).toEqual(wholeAsOf(asOf));
  });

  it('is there in part from the first slot on that is not known', () => {
    expect(of([{ from: 0, to: 12 }])).toEqual({ ...partAsOf(asOf), firstMissing: 12 });
    expect(of([{ from: 15, to: 20 }])).toEqual({ ...partAsOf(asOf), firstMissing: 10 });
    expect(of([], { hasRows: true })).toEqual({ ...partAsOf(asOf), firstMissing: 10 });
  });

  it('is not there when nothing of it is known, whatever is known beside it', () => {
    expect(of([{ from: 0, to: 10 }])).toEqual(NOTHING);
    expect(of([])).toEqual(NOTHING);
  });
});

it('of several is full or nothing when all of them are, and as new as the newest', () => {
  expect(together([wholeAsOf(1), wholeAsOf(3), wholeAsOf(2)])).toEqual(wholeAsOf(3));
  expect(together([NOTHING, wholeAsOf(3)])).toEqual(partAsOf(3));
  expect(together([NOTHING, NOTHING])).toEqual(NOTHING);
  expect(together([partAsOf(1), wholeAsOf(2)])).toEqual(partAsOf(2));
});
