import { describe, expect, test } from 'vitest';
import { displayWidth, formatTable } from '../../src/cli/output/table.ts';
import {
  formatBytes,
  formatCounted,
  formatDay,
  formatDuration,
  formatInstant,
  formatPercent,
  formatPostgresError,
  formatRelative,
  formatRoughly,
  formatShare,
} from '../../src/core/format.ts';

describe('formatting', () => {
  test.each([
    [0, '0 ms'],
    [999, '999 ms'],
    [59_999, '59 s'],
    [200_000, '3m 20s'],
    [3_600_000, '1h'],
    [7_500_000, '2h 5m'],
    [86_400_000 * 12 + 3_600_000 * 4, '12d 4h'],
  ])('%d ms is shown as %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  test('the parts of a Postgres error are sentences, and its values stay as they are', () => {
    expect(formatPostgresError('no coin is called x', { hint: 'Give an id.' })).toBe(
      'no coin is called x. Give an id.',
    );
    const [message, detail] = ['invalid input: "1.. 2"', 'Key (id)=(7) exists.'];
    expect(formatPostgresError(message, { detail, hint: 'Ask' })).toBe(
      'invalid input: "1.. 2". Key (id)=(7) exists. Ask',
    );
    expect(formatPostgresError(message, { detail: '' })).toBe(message);
  });

  test('instants are in UTC and show seconds only when they have some', () => {
    expect(formatInstant(Date.UTC(2024, 0, 31, 12))).toBe('2024-01-31 12:00Z');
    expect(formatInstant(Date.UTC(2024, 0, 31, 12, 0, 5))).toBe('2024-01-31 12:00:05Z');
    expect(formatDay(Date.UTC(2024, 0, 31))).toBe('2024-01-31');
    expect(formatRelative(60_000, 0)).toBe('in 1m');
    expect(formatRelative(0, 60_000)).toBe('1m ago');
    expect([formatRelative(0, 999), formatRelative(999, 0)]).toEqual(['now', 'now']);
    expect([formatRoughly(0), formatRoughly(61_500)]).toEqual(['under 1 s', '1m 1s']);
  });

  test('only the whole is shown as 100%, and only nothing as 0%', () => {
    expect([0, 1, 500, 99_999, 100_000].map((part) => formatPercent(part, 100_000))).toEqual([
      '0%',
      '0.1%',
      '0.5%',
      '99.9%',
      '100%',
    ]);
    expect(formatPercent(0, 0)).toBe('–');
    // A part of a limit, which may be exceeded.
    expect([50, 100, 100.01, 105, 1_234].map((part) => formatShare(part, 100))).toEqual([
      ...['50%', '100%', '100.1%', '105%', '1234%'],
    ]);
    expect(formatShare(1, 0)).toBe('–');
  });

  test('counts agree with their noun in number', () => {
    expect(formatCounted(1, 'request')).toBe('1 request');
    expect(formatCounted(1.2, 'request')).toBe('1 request');
    expect([1, 2].map((n) => formatCounted(n, 'series'))).toEqual(['1 series', '2 series']);
    expect(formatCounted(12_345, 'request')).toBe('12,345 requests');
    expect(formatBytes(93_500_000)).toBe('93.5 MB');
  });
});

describe('formatTable', () => {
  const titles = [{ title: 'coin' }, { title: 'slots', align: 'right' as const }];

  test('aligns numbers to the right and texts to the left', () => {
    expect(
      formatTable(titles, [
        ['btc-bitcoin', '1,234'],
        ['x', '7'],
      ]),
    ).toBe(['coin         slots', '───────────  ─────', 'btc-bitcoin  1,234', 'x                7', ''].join('\n'));
  });

  test('shortens the widest text to fit the terminal, but never a number', () => {
    const lines = formatTable(titles, [['a-coin-with-quite-a-long-id', '1,234,567']], 24).split('\n');
    expect(lines[2]).toBe('a-coin-with-…  1,234,567');
    expect(Math.max(...lines.map(displayWidth))).toBe(24);
  });

  test('does not cut values that mean nothing when they are cut, such as hashes', () => {
    const whole = [{ title: 'hash', isWhole: true }, { title: 'why' }];
    const lines = formatTable(whole, [['c876244cbecb545f', 'a long explanation']], 26).split('\n');
    expect(lines[2]).toBe('c876244cbecb545f  a long …');
  });

  test('removes control characters, so that no text can steer the terminal', () => {
    expect(formatTable([{ title: 'name' }], [['a\u001b[2Jb\nc\u202e']])).toContain('a[2Jb c\n');
  });

  test('counts a wide character as two columns', () => {
    expect(displayWidth('币安🚀a')).toBe(7);
  });
});
