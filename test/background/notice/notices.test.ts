/** Which notices are due, from plain inputs without a database. */
import { describe, expect, test } from 'vitest';
import { type NoticeInputs, noticesOf } from '../../../src/background/notice/notices.ts';
import { hasBudget } from '../../../src/background/notice/states.ts';
import { NOTICE_EVENTS } from '../../../src/core/settings/notice-settings.ts';
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
  outage: null,
});
const calm: NoticeInputs = {
  now: NOW,
  accountId: 'me',
  plan: 'free',
  quota: quota(0),
  reserved: { day: 100, month: 3000, account: { day: 3, month: 40 } },
  alerts: {
    historyLimits: [],
    isRevisedOften: false,
    quarantined: null,
    candlesAt: null,
    lastFailure: null,
    isUnreached: false,
    backfills: 0,
    dueSeries: 0,
    doneTicks: new Map(),
    lateTiers: [],
    endedBackfills: [],
  },
};
const told = (inputs: Partial<NoticeInputs>, alerts: Partial<NoticeInputs['alerts']> = {}) =>
  noticesOf(
    { ...calm, ...inputs, alerts: { ...calm.alerts, ...alerts } },
    { url: '', events: NOTICE_EVENTS, revisionsADay: 100 },
  );

describe('the quota', () => {
  const topics = (spent: number, hold: QuotaState['hold'] = null) =>
    told({ quota: quota(spent, hold) }).map(({ topic }) => topic.replace('quota me ', ''));

  test('causes a notice from 80 % on, and counts as exhausted when only the request for the account is left', () => {
    expect(topics(799)).toEqual([]);
    expect(topics(800)).toEqual(['day 2030-05-15 00:00Z 80']);
    expect(topics(996)).toEqual(['day 2030-05-15 00:00Z 80']);
    expect(topics(997)).toEqual(['day 2030-05-15 00:00Z 100']);
  });

  test('is exhausted when the upstream says so, except while a probe is due', () => {
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

describe('a backfill of the service that has ended', () => {
  const ended = {
    id: 12,
    state: 'done',
    interval: '24h',
    quote: 'usd',
    coins: 3,
    from: Date.UTC(2029, 0),
    to: Date.UTC(2030, 0),
    requestedAt: NOW - 2 * HOUR,
    finishedAt: NOW - HOUR,
    message: null,
    isWanted: true,
    failingSince: null,
  } as const;
  const ending = (change: Partial<NoticeInputs['alerts']['endedBackfills'][number]>) =>
    told({}, { endedBackfills: [{ ...ended, ...change }] });

  test('causes a notice that describes it', () => {
    expect(ending({})).toEqual([
      {
        event: 'backfill-done',
        topic: 'backfill 12 done 2030-05-15 09:00Z',
        quietMs: 48 * HOUR,
        text: 'Backfill 12 (24h usd of 3 coins, 2029-01-01 to 2030-01-01) is done: nothing is left to fetch. It was requested 2030-05-15 08:00Z, and ended 2030-05-15 09:00Z.',
      },
    ]);
  });

  test('causes a notice with the reason why it failed, and what to do', () => {
    const [notice] = ending({ state: 'failed', message: 'left: 3 slots malformed', isWanted: false });
    expect(notice).toMatchObject({ event: 'backfill-failed' });
    expect(notice!.text).toMatch(/ failed: left: 3 slots malformed\. .*chandler backfills resume 12$/);
  });

  test('causes one notice when the past of tracked series fails for the same reason each day', () => {
    const failed = { state: 'failed', message: 'left: 3 slots malformed', isWanted: false } as const;
    const failingSince = NOW - 48 * HOUR;
    const first = ending({ ...failed, id: 11, finishedAt: failingSince, failingSince });
    const later = ending({ ...failed, id: 12, finishedAt: NOW - HOUR, failingSince });
    expect(later[0]!.topic).toBe(first[0]!.topic);
    expect(later[0]!.quietMs).toBeGreaterThanOrEqual(365 * 24 * HOUR);
    expect(later[0]!.text).toMatch(/the service tries again each day, .* for another reason/);
  });

  test('causes no notice when it is done and only the service itself wanted it', () => {
    expect(ending({ isWanted: false })).toEqual([]);
  });
});
