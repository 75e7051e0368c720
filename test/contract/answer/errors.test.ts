import { describe, expect, it } from 'vitest';
import {
  formatGoTime,
  historyLimitText,
  intervalLimitText,
  parseGoTime,
  parseHistoryLimit,
} from '../../../src/contract/answer/errors.ts';

const at = Date.UTC(2022, 5, 19, 9, 50, 50, 135);

describe('the text of a history limit', () => {
  it('is written as the upstream writes it', () => {
    expect(historyLimitText(at, 583_320)).toBe(
      'Getting historical OHLCV data before 2022-06-19 09:50:50.13558332 +0000 UTC is not allowed in this plan. Check plans on coinpaprika.com/api',
    );
  });

  it('is parsed as the first millisecond that is allowed', () => {
    expect(parseHistoryLimit(historyLimitText(at, 583_320))).toEqual({ notBefore: at + 1 });
    expect(parseHistoryLimit(historyLimitText(at))).toEqual({ notBefore: at });
    expect(
      parseHistoryLimit(
        'Getting daily historical data before 2025-10-07 13:25:47 +0000 UTC is not allowed in this plan.',
      ),
    ).toEqual({
      notBefore: Date.UTC(2025, 9, 7, 13, 25, 47),
    });
  });

  it('has no date when the whole interval is refused', () => {
    expect(parseHistoryLimit(intervalLimitText('1h'))).toEqual({ notBefore: null });
    expect(parseHistoryLimit('Getting minute historical data is not allowed in this plan')).toEqual({
      notBefore: null,
    });
  });

  it('is not found in other errors', () => {
    expect(parseHistoryLimit('you have reached maximum request limit')).toBeNull();
  });
});

describe('a time in the format of Go', () => {
  it.each([
    ['2022-06-19 11:50:50.5 +0200 CEST', Date.UTC(2022, 5, 19, 9, 50, 50, 500)],
    ['2022-06-19 09:50:50 -0330 -0330', Date.UTC(2022, 5, 19, 13, 20, 50)],
    ['2022-06-19 09:50:50.000000001 +0000 UTC', Date.UTC(2022, 5, 19, 9, 50, 50, 1)],
    ['2022-06-19 09:50:50.25 +0000 UTC m=+0.000012', Date.UTC(2022, 5, 19, 9, 50, 50, 250)],
  ])('may be %s', (text, instant) => expect(parseGoTime(text)).toBe(instant));

  it('is written without zeros at the end of the fraction', () => {
    expect(formatGoTime(Date.UTC(2022, 5, 19), 0)).toBe('2022-06-19 00:00:00 +0000 UTC');
    expect(formatGoTime(Date.UTC(2022, 5, 19), 10)).toBe('2022-06-19 00:00:00.00000001 +0000 UTC');
  });

  it('is not found in other texts', () => {
    for (const text of ['', 'now', '2022-06-19', '2022-06-31 09:50:50 +0000 UTC']) expect(parseGoTime(text)).toBeNull();
  });
});
