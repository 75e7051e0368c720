import { describe, expect, test } from 'vitest';
import { parseDuration, parseTime } from '../../../src/cli/input/time.ts';
import { UsageError } from '../../../src/cli/shell/exit.ts';

const NOW = Date.UTC(2025, 5, 15, 12, 34, 56);

describe('parseTime', () => {
  test.each([
    ['2024-02-29', '2024-02-29T00:00:00.000Z'],
    ['1970-01-01', '1970-01-01T00:00:00.000Z'],
    ['2024-01-31T12:00Z', '2024-01-31T12:00:00.000Z'],
    ['2024-01-31 12:00z', '2024-01-31T12:00:00.000Z'],
    ['2024-01-31T12:00:30.25Z', '2024-01-31T12:00:30.250Z'],
    ['2024-01-31T00:30+02:00', '2024-01-30T22:30:00.000Z'],
    ['2024-01-31T12:00-0530', '2024-01-31T17:30:00.000Z'],
    ['-30d', '2025-05-16T12:34:56.000Z'],
    ['-12h', '2025-06-15T00:34:56.000Z'],
    ['-1d12h', '2025-06-14T00:34:56.000Z'],
    ['now', '2025-06-15T12:34:56.000Z'],
    ['-5000d', '2011-10-07T12:34:56.000Z'],
  ])('reads %s as %s', (text, iso) => {
    expect(new Date(parseTime(text, NOW)).toISOString()).toBe(iso);
  });

  test.each([
    ['2024-02-30', /2024-02 has 29 days/],
    ['2023-02-29', /2023-02 has 28 days/],
    ['2024-13-01', /no month 13/],
    ['2024-00-10', /no month 00/],
    ['2024-01-00', /has 31 days/],
    ['2024-01-31T12:00', /2024-01-31T12:00Z for UTC/],
    ['2024-01-31T24:00Z', /hours go to 23/],
    ['2024-01-31T12:00+25:00', /no zone/],
    ['30d', /begins with a minus: -30d/],
    ['+12h', /begins with a minus: -12h/],
    ['-30', /30 days before now write -30d/],
    ['30', /30 days before now write -30d/],
    ['2024', /2024-01-31/],
    ['-', /2024-01-31/],
    ['', /2024-01-31/],
    ['01.02.2024', /2024-01-31T12:00Z or -30d/],
    ['yesterday', /relative/],
    ['1969-12-31', /1970/],
    ['1706659200', /2024-01-31/],
  ])('refuses %j and says what would be right', (text, message) => {
    expect(() => parseTime(text, NOW)).toThrow(UsageError);
    expect(() => parseTime(text, NOW)).toThrow(message);
  });
});

describe('parseDuration', () => {
  test.each([
    ['500ms', 500],
    ['90s', 90_000],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['1h30m', 5_400_000],
    ['1.5d', 129_600_000],
    ['2w', 1_209_600_000],
    ['0s', 0],
  ])('reads %s as %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  test.each(['', '5', 'm', '5 m', '-5m', '5x', '1h30', '1..5h', '999999d'])('refuses %j', (text) => {
    expect(() => parseDuration(text)).toThrow(UsageError);
  });
});
