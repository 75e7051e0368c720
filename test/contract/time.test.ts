import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatTime, parseDate, parseTime } from '../../src/contract/time.ts';

describe('times of the API', () => {
  it('are read back as they were written, for every second of four millennia', () => {
    fc.assert(
      fc.property(fc.integer({ min: -62_135_596_800, max: 64_060_588_800 }), (seconds) => {
        expect(parseTime(formatTime(seconds * 1000))).toBe(seconds * 1000);
        expect(formatTime(seconds * 1000)).toBe(new Date(seconds * 1000).toISOString().replace('.000Z', 'Z'));
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ['2022-04-19T15:44:00.1239Z', '2022-04-19T15:44:00.123Z'],
    ['2022-04-19T15:44:00+02:00', '2022-04-19T13:44:00Z'],
    ['2022-04-19T15:44:00-0530', '2022-04-19T21:14:00Z'],
    ['2022-11-15T15:40', '2022-11-15T15:40:00Z'],
    ['2022-11-15T15:40:00', '2022-11-15T15:40:00Z'],
    ['2024-02-29t00:00:00z', '2024-02-29T00:00:00Z'],
  ])('may be written as %s', (text, same) => {
    expect(parseTime(text)).toBe(new Date(same).getTime());
  });

  it.each([
    '',
    'yesterday',
    '2022-13-01T00:00:00Z',
    '2022-02-29T00:00:00Z',
    '2022-01-01T24:00:00Z',
    '2022-01-01T0x:00:00Z',
    '2022-01-01',
  ])('cannot be written as %j', (text) => expect(parseTime(text)).toBeNaN());

  it('include a date, which means its midnight in UTC', () => {
    expect(parseDate('2022-01-19')).toBe(Date.UTC(2022, 0, 19));
    for (const text of ['2022-1-19', '2022-02-30', '2022-01-19 ']) expect(parseDate(text)).toBeNaN();
  });
});
