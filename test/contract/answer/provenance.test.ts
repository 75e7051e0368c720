import { describe, expect, it } from 'vitest';
import {
  combineProvenance,
  completeAsOf,
  historyProvenance,
  NO_DATA,
  partialAsOf,
  provenanceHeaders,
  provenanceOf,
  withProvenance,
} from '../../../src/contract/answer/provenance.ts';

const asOf = Date.UTC(2024, 0, 2, 3, 4, 5);

it('headers say what an answer is based on, and are missing if the source does not know', () => {
  const seen = { 'X-Chandler-As-Of': '2024-01-02T03:04:05Z' };
  const headers = (provenance: Parameters<typeof withProvenance>[1]) =>
    provenanceHeaders(withProvenance([], provenance));
  expect(headers(completeAsOf(asOf))).toEqual({ 'X-Chandler-Coverage': 'full', ...seen });
  expect(headers({ ...partialAsOf(asOf), firstMissing: Date.UTC(2024, 0, 1) })).toEqual({
    'X-Chandler-Coverage': 'partial; first-missing=2024-01-01T00:00:00Z',
    ...seen,
  });
  expect(headers(partialAsOf(asOf))).toEqual({ 'X-Chandler-Coverage': 'partial', ...seen });
  expect(headers(partialAsOf(null))).toEqual({ 'X-Chandler-Coverage': 'partial' });
  expect(headers(completeAsOf(null))).toEqual({ 'X-Chandler-Coverage': 'none' });
  expect(provenanceHeaders([])).toEqual({});
  expect([provenanceOf(null), provenanceOf([])]).toEqual([null, null]);
});

describe('the coverage of a history', () => {
  const of = (known: { from: number; to: number }[], more: { hasRows?: boolean; to?: number } = {}) =>
    historyProvenance({ requested: { from: 10, to: more.to ?? 20 }, known, hasRows: more.hasRows ?? false, asOf });

  it('is full when every slot is known, and when the range has no slot', () => {
    expect(of([{ from: 0, to: 30 }])).toEqual(completeAsOf(asOf));
    expect(of([], { to: 10 })).toEqual(completeAsOf(asOf));
  });

  it('is partial when a slot is unknown, and names the first one', () => {
    expect(of([{ from: 0, to: 12 }])).toEqual({ ...partialAsOf(asOf), firstMissing: 12 });
    expect(of([{ from: 15, to: 20 }])).toEqual({ ...partialAsOf(asOf), firstMissing: 10 });
    expect(of([], { hasRows: true })).toEqual({ ...partialAsOf(asOf), firstMissing: 10 });
  });

  it('is none when no slot is known, even if others outside the range are', () => {
    expect(of([{ from: 0, to: 10 }])).toEqual(NO_DATA);
    expect(of([])).toEqual(NO_DATA);
  });
});

it('the coverage of several answers is full or none if all of theirs are, and as new as the newest', () => {
  expect(combineProvenance([completeAsOf(1), completeAsOf(3), completeAsOf(2)])).toEqual(completeAsOf(3));
  expect(combineProvenance([NO_DATA, completeAsOf(3)])).toEqual(partialAsOf(3));
  expect(combineProvenance([NO_DATA, NO_DATA])).toEqual(NO_DATA);
  expect(combineProvenance([partialAsOf(1), completeAsOf(2)])).toEqual(partialAsOf(2));
});
