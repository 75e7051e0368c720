/** Which notices are due, from plain inputs without a database. */
import { describe, expect, test } from 'vitest';
import { hasBudget, type NoticeInputs, noticesOf } from '../../../src/background/notice/notices.ts';
import { NOTICE_EVENTS } from '../../../src/core/settings/notice-settings.ts';
import { cadenceOf } from '../../../src/ingest/schedule/cadence.ts';
import type { QuotaState } from '../../../src/quota/quota.ts';

const NOW = Date.UTC(2030, 4, 15, 10);
const HOUR = 3_600_000;
const window = (start: number, reset: number, spent: number, limit: number | null) => ({ start, reset, spent, limit });
const quota = (spent: number, hold: QuotaState['hold'] = null): QuotaState => ({
  accountId: 'me',
  now: NOW,
  month: window(Date.UTC(2030, 4), Date.UTC(2030, 5), spent, null),
  day: window(Date.UTC(2030, 4, 15), Date.UTC(2030, 4, 16), spent, 1000),
  rate: { limit: 10, now: 10, nextFree: NOW },
  hold,
});
const calm: NoticeInputs = {
  now: NOW,
  accountId: 'me',
  plan: 'free',
  quota: quota(0),
  reserved: { day: 100, month: 3000, account: { day: 3, month: 40 } },
  schedules: [],
  refusal: null,
  alerts: {
    historyLimits: [],
    isRevisedOften: false,
    quarantined: null,
    candlesAt: null,
    lastFailure: null,
    backfills: 0,
    dueSeries: 0,
    doneTicks: new Map(),
  },
  couldAskCandlesSince: null,
  couldRunSince: null,
};
const told = (inputs: Partial<NoticeInputs>, alerts: Partial<NoticeInputs['alerts']> = {}) =>
  noticesOf(
    { ...calm, ...inputs, alerts: { ...calm.alerts, ...alerts } },
    { url: '', events: NOTICE_EVENTS, stuckAfterMs: HOUR, revisionsADay: 100 },
  );

describe('stuck', () => {
  const waits = { couldAskCandlesSince: NOW - 3 * HOUR };

  test('is work that brings nothing for long enough, since its last candle or since there was work and quota', () => {
    expect(told(waits, { backfills: 1, candlesAt: NOW - 2 * HOUR })[0]).toMatchObject({
      event: 'stuck',
      topic: 'stuck candles',
      quietMs: 24 * HOUR,
      text: expect.stringMatching(/^Stuck: no candles or prices arrived for 2h, .*Waiting: 1 backfill\./),
    });
    expect(told(waits, { dueSeries: 2, candlesAt: NOW - 30 * HOUR })[0]!.text).toMatch(
      /for 3h, .*Waiting: 2 tracked series/,
    );
    expect(told(waits, { backfills: 1, candlesAt: NOW - HOUR + 1 })).toEqual([]);
    expect(told({ couldAskCandlesSince: NOW - HOUR + 1 }, { backfills: 1 })).toEqual([]);
    expect(told({}, { backfills: 1 })).toEqual([]);
  });

  test('says what all requests wait for', () => {
    const hold = { until: NOW + HOUR, reason: 'unavailable', message: 'example.org answered 503' } as const;
    expect(told({ ...waits, quota: quota(0, hold) }, { backfills: 1 })[0]!.text).toMatch(
      /All requests wait until 2030-05-15 11:00Z: example\.org answered 503\. \(me\)$/,
    );
  });

  test('is a schedule whose tick did not run; another such schedule is another notice', () => {
    const schedule = (name: 'global' | 'coins', cron: string) => ({
      name,
      fetches: '',
      requests: 1,
      cadence: cadenceOf(cron),
      isSet: false,
      asksAccount: false,
    });
    const schedules = [schedule('global', '*/30 * * * *'), schedule('coins', '0 */6 * * *')];
    const since = (global: number, coins: number) =>
      told(
        { schedules, couldRunSince: NOW - 24 * HOUR },
        {
          doneTicks: new Map([
            ['global', NOW - global * HOUR],
            ['coins', NOW - coins * HOUR],
          ]),
        },
      ).map(({ topic }) => topic);
    expect(since(0, 4)).toEqual([]);
    expect(since(1, 4)).toEqual([]);
    expect(since(1.5, 4)).toEqual(['stuck schedules global']);
    expect(since(1.5, 10)).toEqual(['stuck schedules global, coins']);
  });
});

describe('the quota', () => {
  const topics = (spent: number, hold: QuotaState['hold'] = null) =>
    told({ quota: quota(spent, hold) }).map(({ topic }) => topic.replace('quota me ', ''));

  test('causes a notice from 80 % on, and is exhausted when only the request for the account is left', () => {
    expect(topics(799)).toEqual([]);
    expect(topics(800)).toEqual(['day 2030-05-15 00:00Z 80']);
    expect(topics(996)).toEqual(['day 2030-05-15 00:00Z 80']);
    expect(topics(997)).toEqual(['day 2030-05-15 00:00Z 100']);
  });

  test('is exhausted when the upstream says so, but not while a probe is due', () => {
    const hold = (until: number) => ({ until, reason: 'quota exhausted', message: 'spent' }) as const;
    expect(topics(5, hold(Date.UTC(2030, 4, 16, 0, 5)))).toEqual(['day 2030-05-15 00:00Z 100']);
    expect(topics(5, hold(Date.UTC(2030, 5, 1, 0, 5)))).toEqual(['month 2030-05-01 00:00Z 100']);
    expect(topics(5, hold(NOW + 10_000))).toEqual([]);
  });

  test('is left when there is more than the reservation', () => {
    expect(hasBudget(quota(899), calm.reserved)).toBe(true);
    expect(hasBudget(quota(900), calm.reserved)).toBe(false);
    expect(hasBudget(quota(0, { until: NOW + 1, reason: 'quota exhausted', message: '' }), calm.reserved)).toBe(false);
    expect(hasBudget(quota(0, { until: NOW + 1, reason: 'limited', message: '' }), calm.reserved)).toBe(true);
  });
});

test('a history limit that is met again a few seconds further back is the same limit', () => {
  const limit = (depthMs: number | null) =>
    told({}, { historyLimits: [{ interval: '1h', depthMs, message: 'no' }] })[0]!;
  expect(limit(24 * HOUR).topic).toBe(limit(24 * HOUR - 20_000).topic);
  expect(limit(30 * 24 * HOUR).topic).not.toBe(limit(24 * HOUR).topic);
  expect(limit(null).text).toMatch(/^The plan free gives no 1h candles: "no"/);
});
