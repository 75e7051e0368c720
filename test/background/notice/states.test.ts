/** Which states an operator is notified of, from plain inputs without a database. */
import { describe, expect, test } from 'vitest';
import {
  databaseLocked,
  isWell,
  type StateInputs,
  statesOf,
  withoutConsequences,
} from '../../../src/background/notice/states.ts';
import type { StateEvent } from '../../../src/core/settings/notice-settings.ts';
import { cadenceOf } from '../../../src/ingest/schedule/cadence.ts';

const NOW = Date.UTC(2030, 4, 15, 10);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const calm: StateInputs = {
  now: NOW,
  accountId: 'me',
  plan: 'free',
  quota: {
    accountId: 'me',
    now: NOW,
    month: { start: Date.UTC(2030, 4), reset: Date.UTC(2030, 5), spent: 0, limit: null },
    day: { start: Date.UTC(2030, 4, 15), reset: Date.UTC(2030, 4, 16), spent: 0, limit: 1000 },
    rate: { limit: 10, now: 10, nextFree: NOW },
    hold: null,
    outage: null,
  },
  schedules: [],
  refusal: null,
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
  outage: null,
  downSince: null,
  couldRequestCandlesSince: null,
  couldRunSince: null,
  behindSince: null,
  disks: [],
  lake: null,
};

type Change = Partial<Omit<StateInputs, 'alerts'>> & { readonly alerts?: Partial<StateInputs['alerts']> };

const states = ({ alerts, ...inputs }: Change) =>
  statesOf({ ...calm, ...inputs, alerts: { ...calm.alerts, ...alerts } }, HOUR);
const holding = (change: Change) => states(change).filter(({ since }) => since !== null);
const one = (event: StateEvent, change: Change) => {
  const found = holding(change);
  expect(found.map((state) => state.event)).toEqual([event]);
  return found[0]!;
};

test('no state holds when all is well', () => {
  expect(holding({})).toEqual([]);
  expect(isWell(states({}))).toBe(true);
});

describe('the state stuck', () => {
  const waits = { couldRequestCandlesSince: NOW - 3 * HOUR };

  test('holds when work brings nothing for long enough, since its last candle or since there was work and quota', () => {
    const stuck = one('stuck', { ...waits, alerts: { backfills: 1, candlesAt: NOW - 2 * HOUR } });
    expect(stuck).toMatchObject({ topic: 'stuck candles', since: NOW - 2 * HOUR });
    expect(stuck.text).toMatch(
      /^Stuck: no candles or prices arrived since 2030-05-15 08:00Z \(2h\), .*Waiting: 1 backfill\. .*chandler backfills list/,
    );
    expect(one('stuck', { ...waits, alerts: { dueSeries: 2, candlesAt: NOW - 30 * HOUR } }).text).toMatch(
      /\(3h\), .*Waiting: 2 tracked series/,
    );
    expect(holding({ ...waits, alerts: { backfills: 1, candlesAt: NOW - HOUR + 1 } })).toEqual([]);
    expect(holding({ couldRequestCandlesSince: NOW - HOUR + 1, alerts: { backfills: 1 } })).toEqual([]);
    expect(holding({ alerts: { backfills: 1 } })).toEqual([]);
  });

  test('names what all requests wait for', () => {
    const hold = { until: NOW + HOUR, reason: 'unavailable', message: 'example.org answered 503' } as const;
    const { text } = one('stuck', { ...waits, quota: { ...calm.quota, hold }, alerts: { backfills: 1 } });
    expect(text).toMatch(/All requests wait until 2030-05-15 11:00Z: example\.org answered 503\./);
  });

  test('holds for a schedule whose tick did not run; another such schedule is the same state', () => {
    const schedule = (name: 'global' | 'coins', cron: string) => ({
      name,
      fetches: '',
      requests: 1,
      cadence: cadenceOf(cron),
      isSet: false,
      isAccountRequest: false,
    });
    const schedules = [schedule('global', '*/30 * * * *'), schedule('coins', '0 */6 * * *')];
    const late = (global: number, coins: number) =>
      holding({
        schedules,
        couldRunSince: NOW - 24 * HOUR,
        alerts: {
          doneTicks: new Map([
            ['global', NOW - global * HOUR],
            ['coins', NOW - coins * HOUR],
          ]),
        },
      });
    expect(late(0, 4)).toEqual([]);
    expect(late(1, 4)).toEqual([]);
    expect(late(1.5, 4)).toMatchObject([{ topic: 'stuck schedules', text: expect.stringContaining('(global)') }]);
    expect(late(1.5, 10)).toMatchObject([
      { topic: 'stuck schedules', text: expect.stringContaining('(global, coins)') },
    ]);
  });

  test('is left out beside its cause', () => {
    const stuck: Change = { ...waits, alerts: { backfills: 1 } };
    const refusal = { message: 'no; set CHANDLER_API_KEY', since: NOW - 2 * HOUR, retryAt: NOW + HOUR };
    const events = (change: Change) =>
      withoutConsequences(states(change))
        .filter(({ since }) => since !== null)
        .map(({ event }) => event);
    expect(events(stuck)).toEqual(['stuck']);
    expect(events({ ...stuck, refusal })).toEqual(['key-refused']);
    expect(events({ ...stuck, downSince: NOW - HOUR })).toEqual(['upstream-down']);
    // The notice that it is over is sent all the same.
    expect(withoutConsequences(states({ refusal })).some(({ event }) => event === 'stuck')).toBe(true);
  });
});

test('a refused key is reported at once, with since when, why, and what to do', () => {
  const refusal = {
    message: 'the upstream refused the key (403); set CHANDLER_API_KEY to a key that is valid',
    since: NOW - 5 * MINUTE,
    retryAt: NOW + MINUTE,
  };
  const state = one('key-refused', { refusal });
  expect(state.text).toBe(
    'Key refused since 2030-05-15 09:55Z: the upstream refused the key (403); set CHANDLER_API_KEY to a key that is valid. Nothing is fetched meanwhile, and nothing is lost. Chandler tries the key again automatically, next at 2030-05-15 10:01Z; chandler doctor --online tries it at once. (me)',
  );
  expect(isWell([state])).toBe(false);
  // The key of another service of the same operator.
  expect(one('key-refused', { refusal: { ...refusal, accountId: 'other' } }).text).toMatch(/ \(other\)$/);
});

test('an upstream that is down is reported after five minutes', () => {
  const outage = { message: 'example.org answered 503' };
  expect(holding({ outage, downSince: NOW - 5 * MINUTE + 1 })).toEqual([]);
  const state = one('upstream-down', { outage, downSince: NOW - 5 * MINUTE });
  expect(state.text).toMatch(
    /^The upstream gives no usable answer since 2030-05-15 09:55Z \(5m\): example\.org answered 503\. .*doctor --online/,
  );
  expect(isWell([state])).toBe(false);
});

test('an age that the quota does not allow is reported after an hour, with the tiers; it is no failure', () => {
  const tier = (targetAgeMs: number, achievableAgeMs: number | null) =>
    ({ tier: 'top', interval: '1h', targetAgeMs, achievableAgeMs }) as const;
  const alerts = { lateTiers: [tier(2 * HOUR, 4 * HOUR), tier(HOUR, null)] };
  expect(holding({ alerts, behindSince: NOW - HOUR + 1 })).toEqual([]);
  const state = one('behind', { alerts, behindSince: NOW - HOUR });
  expect(state.text).toMatch(
    /since 2030-05-15 09:00Z: top 1h 4h instead of 2h, top 1h never instead of 1h\. .*plan free .*--target-age/,
  );
  expect(isWell([state])).toBe(true);
});

test('a lock that another session holds is reported after two minutes, and explains work that is stuck', () => {
  const lock = { message: "session 7 (user 'admin', psql) holds a lock that Chandler needs" };
  const judged = (ms: number) => databaseLocked({ now: NOW, lock, lockedSince: NOW - ms });
  expect(judged(2 * MINUTE - 1).since).toBeNull();
  const state = judged(2 * MINUTE);
  expect(state.since).toBe(NOW - 2 * MINUTE);
  expect(state.text).toMatch(
    /^Another session locks the database since 2030-05-15 09:58Z \(2m\): session 7 \(user 'admin', psql\) holds .*nothing is lost\.$/,
  );
  expect(isWell([state])).toBe(false);
  expect(databaseLocked({ now: NOW, lock: null, lockedSince: null }).since).toBeNull();
  const stuck = states({ couldRequestCandlesSince: NOW - 3 * HOUR, alerts: { backfills: 1 } });
  const told = withoutConsequences([state, ...stuck]).filter(({ since }) => since !== null);
  expect(told.map(({ event }) => event)).toEqual(['database-locked']);
});

test('a disk with little room is reported with its folder', () => {
  const state = one('disk', { disks: [{ folder: '/data', freeBytes: 5e8, lowSince: NOW }] });
  // A container that is started again has another host name.
  expect(state.topic).toBe('disk /data');
  expect(state.text).toMatch(/^The disk of \/data on .* has 500 MB free, low since 2030-05-15 10:00Z\. .*Make room/);
  expect(isWell([state])).toBe(false);
  // Each disk that can be read is judged, so that its recovery is seen.
  expect(states({ disks: [{ folder: '/data', freeBytes: 5e9, lowSince: null }] }).at(-1)).toMatchObject({
    event: 'disk',
    since: null,
  });
});

test('a lake that cannot be written is reported with the reason, and with what readers see', () => {
  const failure = { since: NOW - 2 * HOUR, message: 's3://b/x: writing a failed: there is no such bucket' };
  const state = one('lake', { lake: { place: 's3://b/x', failure, doneAt: NOW - 26 * HOUR } });
  expect(state.text).toMatch(
    /^The lake s3:\/\/b\/x could not be written since 2030-05-15 08:00Z: .*no such bucket\. Readers see it as of 2030-05-14 08:00Z\./,
  );
  expect(isWell([state])).toBe(false);
  expect(states({ lake: { place: 's3://b/x', failure: null, doneAt: null } }).at(-1)).toMatchObject({
    event: 'lake',
    since: null,
  });
});
