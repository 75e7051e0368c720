/** The notices that one or several services send, from the tables as the work leaves them. */
import { tmpdir } from 'node:os';
import { describe, expect, test, vi } from 'vitest';
import { LOOK_MS } from '../../../src/background/operator/notifier.ts';
import { formatInstant } from '../../../src/core/format.ts';
import { accountIdOf } from '../../../src/ingest/request/account.ts';
import { claimNotice, endNotice, raiseNotice } from '../../../src/store/work/notice.ts';
import { runCommand } from '../../support/cli.ts';
import {
  ACCOUNT,
  at,
  clock,
  comes,
  DAY,
  database,
  fetched,
  HOUR,
  hook,
  MINUTE,
  meanwhile,
  NO_SCHEDULES,
  notifier,
  pass,
  queueBackfill,
  START,
  spend,
  texts,
  useHook,
} from './notifier.ts';

useHook();

describe('the operator gets a notice', () => {
  test('about the quota at 80 % and at 100 %, once in each window, however many services run', async () => {
    await spend(799);
    for (let i = 0; i < 3; i++) await notifier(NO_SCHEDULES);
    await pass(MINUTE);
    expect(hook.posts).toEqual([]);
    await spend(800);
    expect((await texts(1))[0]).toBe(
      `80 % of the quota of the day is used (800 of 1,000 requests). The next day begins 2030-05-16 00:00Z. Requests for the schedules are reserved. (${ACCOUNT})`,
    );
    await spend(1000);
    expect((await texts(2))[1]).toMatch(
      /^The quota of the day is exhausted \(1,000 of 1,000 requests\)\. .*Nothing is lost/,
    );
    await pass(3 * MINUTE);
    expect(hook.posts).toHaveLength(2);
  });

  test('about a window that the upstream calls exhausted, whatever Chandler counted', async () => {
    await spend(10);
    await database.sql`
      update ops.quota set exhausted_until = ${at(Date.UTC(2030, 5, 1, 0, 1))}, exhausted_message = 'the upstream answered 402: monthly limit'`;
    await notifier(NO_SCHEDULES);
    expect((await texts(1))[0]).toMatch(
      /^The upstream says that the quota of the month is exhausted \(.*monthly limit\); Chandler counted 10 of 20,000 requests/,
    );
  });

  test('about work that is stuck, with the reason, once, not too early, and when it continues', async () => {
    await queueBackfill();
    await fetched('unavailable', '127.0.0.1:9 answered 503');
    const started = clock.now();
    await notifier(NO_SCHEDULES);
    const [text] = await texts(1);
    expect(clock.now() - started).toBeGreaterThanOrEqual(5 * MINUTE);
    expect(text).toMatch(
      /^Stuck: no candles or prices arrived since .*Z \(\d+m( \d+s)?\), although there is work and quota left\. Waiting: 1 backfill\. The last request failed: 127\.0\.0\.1:9 answered 503\./,
    );
    await pass(6 * MINUTE);
    expect(hook.posts).toHaveLength(1);
    const going = () => fetched('stored');
    meanwhile.add(going);
    const [, resolved] = await texts(2);
    meanwhile.delete(going);
    expect(resolved).toBe(`Resolved: candles and prices arrive again. (${ACCOUNT})`);
    // It is stuck again within the hour: a state that comes and goes is reported only when it lasts.
    await pass(8 * MINUTE);
    expect(hook.posts).toHaveLength(2);
    await database.sql`update ops.notice set ended_at = ended_at - interval '1 hour'`;
    await texts(3);
  });

  test('but not about work that only waits for the quota', async () => {
    await queueBackfill();
    await spend(1000);
    await notifier({ ...NO_SCHEDULES, CHANDLER_NOTIFY: 'stuck' });
    await pass(8 * MINUTE);
    expect(hook.posts).toEqual([]);
  });

  test.each(['not final yet', 'another backfill'])(
    'but not about a backfill that waits for its time (%s)',
    async (message) => {
      await queueBackfill();
      await fetched('stored');
      const wait = { until: at(START + 2 * HOUR), message };
      await database.sql`update ops.backfill set wait_until = ${wait.until}, message = ${wait.message}`;
      await notifier({ ...NO_SCHEDULES, CHANDLER_NOTIFY: 'stuck' });
      await pass(30 * MINUTE);
      expect(hook.posts).toEqual([]);
      // When the wait is over, the backfill is work like any other.
      await pass(2 * HOUR);
      expect(hook.posts).toHaveLength(1);
    },
  );

  test('about a backfill that waits since a failure', async () => {
    await queueBackfill();
    await fetched('stored');
    await database.sql`update ops.backfill set wait_until = ${at(START + 2 * HOUR)}, message = 'some failure'`;
    await notifier({ ...NO_SCHEDULES, CHANDLER_NOTIFY: 'stuck' });
    expect((await texts(1))[0]).toMatch(/^Stuck: no candles or prices arrived since /);
  });

  test('about schedules that are due and did not run', async () => {
    await notifier({ ...NO_SCHEDULES, CHANDLER_SCHEDULE_GLOBAL: '* * * * *', CHANDLER_SCHEDULE_COINS: '7 3 * * *' });
    expect((await texts(1))[0]).toMatch(
      /^Stuck: schedules were due but did not run \(global\), the first since .*Z \(/,
    );
    // Another schedule joins: the state is the same.
    await notifier({ ...NO_SCHEDULES, CHANDLER_SCHEDULE_GLOBAL: '* * * * *', CHANDLER_SCHEDULE_TICKERS: '* * * * *' });
    await pass(8 * MINUTE);
    expect(hook.posts).toHaveLength(1);
  });

  test('about a refused key at once, not about the schedules that it stops, nor about a plan that is not known', async () => {
    const id = accountIdOf('key', 'http://127.0.0.1:9/v1');
    await database.sql`
      insert into ops.quota (account_id, day_start, day_spent, month_start, month_spent)
      values (${id}, ${at(Date.UTC(2030, 4, 15))}, 30000, ${at(Date.UTC(2030, 4, 1))}, 30000)`;
    await database.sql`
      insert into ops.account (id, origin, plan, refused_at, refused_since, refusals, refused_scheme, refusal)
      values (${id}, 'http://127.0.0.1:9', 'free', ${at(START)}, ${at(START - HOUR)}, 2, 'auto', 'the upstream refused the key')`;
    const settings = { ...NO_SCHEDULES, CHANDLER_API_KEY: 'key', CHANDLER_SCHEDULE_GLOBAL: '* * * * *' };
    const services = [await notifier(settings), await notifier(settings)];
    expect((await texts(1))[0]).toMatch(
      /^Key refused since 2030-05-15 09:00Z: the upstream refused the key\. .*next at 2030-05-15 10:04Z; /,
    );
    for (const service of services)
      await comes(async () => expect(await service.metrics()).toMatch(/^chandler_alert\{event="key-refused"\} 1$/m));
    await pass(8 * MINUTE);
    expect(hook.posts).toHaveLength(1);
    await database.sql`update ops.account set refused_at = null, refused_since = null, refusals = 0, refusal = null`;
    // A notice about the schedule that could not run may follow directly.
    const resolved = `Resolved: the upstream accepts the key again, and all work goes on. (${id})`;
    await comes(() => expect(hook.texts()[1]).toBe(resolved));
    await comes(async () => expect(await services[0]!.metrics()).toMatch(/^chandler_alert\{event="key-refused"\} 0$/m));
  });

  test('about an upstream that is down, and when it answers again', async () => {
    await spend(0);
    await database.sql`update ops.quota set down_streak = 4, down_at = now(), down_message = 'example.org answered 503'`;
    const [service] = [await notifier(NO_SCHEDULES), await notifier(NO_SCHEDULES)];
    expect((await texts(1))[0]).toMatch(
      /^The upstream gives no usable answer since .* \(5m( \d+s)?\): example\.org answered 503\. /,
    );
    await database.sql`update ops.quota set down_streak = 0`;
    // For notices it is not over yet.
    await pass(MINUTE);
    expect(hook.posts).toHaveLength(1);
    expect(await service.metrics()).toMatch(/^chandler_alert\{event="upstream-down"\} 1$/m);
    expect((await texts(2))[1]).toBe(`Resolved: the upstream answers again, and all work goes on. (${ACCOUNT})`);
    await comes(async () => expect(await service.metrics()).toMatch(/^chandler_alert\{event="upstream-down"\} 0$/m));
    await pass(3 * MINUTE);
    expect(hook.posts).toHaveLength(2);
  });

  test('about an upstream that was never reached', async () => {
    await database.sql`
      insert into ops.fetch (sent_at, as_of, account_id, endpoint, attempt, outcome, duration_ms, rows, stored, revised, quarantined,
        bytes, message)
      values (${at(START)}, ${at(START)}, ${ACCOUNT}, 'global', 1, 'unavailable', 5, 0, 0, 0, 0, 0, 'nothing listens at 127.0.0.1:9')`;
    await notifier(NO_SCHEDULES);
    expect((await texts(1))[0]).toMatch(
      /^The upstream gives no usable answer since .*: nothing listens at 127\.0\.0\.1:9\. .*CHANDLER_BASE_URL/,
    );
  });

  test('about an age that the quota does not allow, once, whichever tiers join', async () => {
    await fetched('stored');
    await database.sql`
      insert into market.series (coin_id, quote, interval, wanted) values ('btc-bitcoin', 'usd', '24h', '{}')`;
    const track = (interval: string) => database.sql`
      with made as (
        insert into ops.tier (tier, interval, target_age, priority, planned_at, achievable_age)
        values ('list', ${interval}, '1 hour', 20, now(), '3 hours') returning id
      )
      insert into ops.tracked (series_id, tier_id, tracked_at)
      select s.id, made.id, now() from made, market.series s where s.interval = ${interval}`;
    await track('1h');
    // Since an hour ago, as seen by services that ended just now.
    await database.sql`
      insert into ops.watch (name, since, seen_at) values (${`${ACCOUNT} is behind`}, ${at(START - HOUR)}, ${at(clock.now())})`;
    await notifier(NO_SCHEDULES);
    expect((await texts(1))[0]).toMatch(
      /^Tracked series are kept less fresh than wanted since 2030-05-15 09:00Z: list 1h 3h instead of 1h\. /,
    );
    await track('24h');
    await pass(3 * MINUTE);
    expect(hook.posts).toHaveLength(1);
    await database.sql`update ops.tier set achievable_age = '1 hour' where interval = '1h'`;
    // An interval that the plan does not include is reported as a limit of the plan: more requests would not help.
    await database.sql`update ops.tier set achievable_age = null where interval = '24h'`;
    await database.sql`
      insert into market.refusal (account_plan, interval, reason, message, refused_at)
      values ('free', '24h', 'interval', 'no', ${at(START - 2 * DAY)})`;
    await comes(async () =>
      expect(
        await database.sql`select from ops.watch where name = 'behind is over' and since is not null`,
      ).toHaveLength(1),
    );
    // The age that the quota allows changes a little from run to run: the state is over after a day.
    await database.sql`update ops.watch set since = since - interval '1 day' where name = 'behind is over'`;
    expect((await texts(2))[1]).toMatch(
      /^Resolved: the quota suffices for the target age of every tracked series again\./,
    );
  });

  test('about backfills of the service that ended, each once', async () => {
    await queueBackfill();
    await queueBackfill();
    await database.sql`update ops.backfill set requested_by = 'me@here'`;
    for (let i = 0; i < 2; i++) await notifier(NO_SCHEDULES);
    await pass(2 * MINUTE);
    expect(hook.posts).toEqual([]);
    await database.sql`update ops.backfill set state = 'done', finished_at = ${at(clock.now())} where id = 1`;
    expect((await texts(1))[0]).toMatch(/^Backfill 1 \(1h usd of 1 coin, 2030-01-01 to 2030-02-01\) is done: /);
    await database.sql`
      update ops.backfill set state = 'failed', message = 'left: 2 slots malformed', finished_at = ${at(clock.now())} where id = 2`;
    expect((await texts(2))[1]).toMatch(/^Backfill 2 \(.*\) failed: left: 2 slots malformed\. .*backfills resume 2$/);
    await pass(2 * MINUTE);
    expect(hook.posts).toHaveLength(2);
  });

  test('about the past of tracked series that fails each day for the same reason, once, and again when the reason changes', async () => {
    const fail = (days: number, message: string) => database.sql`
      insert into ops.backfill (requested_at, started_at, finished_at, state, is_detached, spec, coin_ids, span, interval, quote,
        planned_requests, requested_by, message)
      values (${at(START - days * DAY - HOUR)}, ${at(START - days * DAY - HOUR)}, ${at(START - days * DAY)}, 'failed', true,
        '{"history": "1h usd"}', '{btc-bitcoin}', '[2030-01-01, 2030-02-01)', '1h', 'usd', 3, 'the audit of gaps', ${message})`;
    await fail(2.2, 'left: 3 slots malformed');
    // As the service reported it then.
    const [first] = await database.sql<{ at: number }[]>`select finished_at as at from ops.backfill`;
    const topic = `history 1h usd failed since ${formatInstant(first!.at)}`;
    await raiseNotice(database.sql, { event: 'backfill-failed', topic, text: 'told', quietMs: 0 }, first!.at);
    await database.sql`update ops.notice set due_at = null, sent_at = raised_at`;
    await fail(1.1, 'left: 1 slot malformed');
    await fail(0.01, 'left: 2 slots malformed');
    for (let i = 0; i < 2; i++) await notifier(NO_SCHEDULES);
    await pass(2 * MINUTE);
    expect(hook.posts).toEqual([]);
    await fail(0, 'left: 2 slots refused');
    expect((await texts(1))[0]).toMatch(/^Backfill 4 \(.*\) failed: left: 2 slots refused\. .*tries again each day/);
    // Weeks after the last failure it is reported again.
    await database.sql`
      update ops.backfill set requested_at = requested_at - interval '20 days', finished_at = finished_at - interval '20 days' where id < 3`;
    expect((await texts(2))[1]).toMatch(/^Backfill 3 \(.*\) failed: left: 2 slots malformed\. /);
    await pass(2 * MINUTE);
    expect(hook.posts).toHaveLength(2);
  });

  test('about a history limit of the plan, many revisions, and quarantined rows', async () => {
    await fetched('stored');
    const now = at(clock.now());
    await database.sql`
      insert into market.refusal (account_plan, interval, depth, reason, message, refused_at)
      values ('free', '24h', '1 day', 'history limit', 'Getting historical OHLCV data before … is not allowed in this plan', ${now}),
        ('pro', '1h', null, 'interval', 'of another plan', ${now})`;
    await database.sql`
      insert into market.revision (series_id, open_time, seen_at, open) select min(s.id), ${now}::timestamptz - n * interval '1 hour', ${now}, 1
      from market.series s, generate_series(1, 3) n group by n`;
    // The operator has changed these values: upstream has nothing to do with them.
    await database.sql`
      insert into market.revision (series_id, open_time, seen_at, reason, open)
      select min(s.id), ${now}, ${now}, 'mended', 1 from market.series s, generate_series(1, 9) n group by n`;
    await database.sql`
      insert into market.quarantine (series_id, open_time, reason, row, seen_at) select min(s.id), ${now}, 'high < low', '{}', ${now}
      from market.series s, generate_series(1, 2) n group by n`;
    await notifier({ ...NO_SCHEDULES, CHANDLER_REVISIONS_A_DAY: '3' });
    const [limit, rows] = await texts(2);
    expect(limit).toMatch(/^The plan free gives 24h candles only 1d back: "Getting historical/);
    expect(rows).toBe('Chandler quarantined 2 invalid rows in market.quarantine: high &lt; low.');
    await database.sql`
      insert into market.revision (series_id, open_time, seen_at, open) select min(id), ${now}, ${now}, 1 from market.series`;
    expect((await texts(3))[2]).toMatch(/^The upstream has changed more than 3 final values within 24 hours/);
    // The same history limit is met again, as it is every day.
    await database.sql`update market.refusal set refused_at = ${at(clock.now())}, depth = '86390 seconds'`;
    await pass(3 * MINUTE);
    expect(hook.posts).toHaveLength(3);
  });

  test('once about a disk with little room, also when its container comes back under another host name', async () => {
    await database.sql`
      insert into ops.notice (event, topic, text, raised_at, began_at, sent_at, attempts)
      values ('disk', ${`disk ${tmpdir()}`}, 'told by another host', ${at(START - HOUR)}, ${at(START - HOUR)}, ${at(START - HOUR)}, 1)`;
    await notifier({ ...NO_SCHEDULES, CHANDLER_ATTEST_DIR: tmpdir() });
    expect((await texts(1))[0]).toMatch(/^Resolved: the disk of .* has .*B free\.$/);
  });

  test('only about the events that the settings name', async () => {
    await spend(1000);
    await notifier({ ...NO_SCHEDULES, CHANDLER_NOTIFY: 'history-limit,stuck' });
    await pass(3 * MINUTE);
    expect(hook.posts).toEqual([]);
  });
});

describe('the heartbeat', () => {
  const runs = async (...roles: string[]) => {
    await database.sql`
      insert into ops.instance (owner, roles, started_at, heartbeat_at)
      values (${roles.join()}, ${roles}, ${at(clock.now())}, ${at(clock.now() + 4 * MINUTE)})`;
  };
  /** Each service does this continuously until the next look. */
  const renew = () => database.sql`update ops.instance set heartbeat_at = ${at(clock.now() + LOOK_MS)}`;
  const heartbeat = () => notifier({ ...NO_SCHEDULES, CHANDLER_WEBHOOK_URL: '', CHANDLER_HEARTBEAT_URL: hook.url });

  test('comes from one of all services, as long as a scheduler and a worker run', async () => {
    await runs('worker', 'http');
    for (let i = 0; i < 2; i++) await heartbeat();
    await pass(MINUTE);
    expect(hook.gets).toBe(0);
    await runs('scheduler');
    await comes(() => expect(hook.gets).toBe(1));
    await pass(3 * MINUTE);
    expect(hook.gets).toBe(1);
    meanwhile.add(renew);
    await comes(() => expect(hook.gets).toBe(2));
    expect(hook.posts).toEqual([]);
  });

  test('is not sent while the upstream refuses the key, and is sent again after it failed', async () => {
    meanwhile.add(renew);
    await runs('scheduler', 'worker');
    await database.sql`
      insert into ops.account (id, origin, plan, refused_at, refused_since, refusals, refused_scheme, refusal)
      values (${ACCOUNT}, 'http://127.0.0.1:9', 'free', ${at(START)}, ${at(START)}, 1, 'auto', 'no key')`;
    hook.answer = (_, response) => void response.writeHead(hook.gets === 1 ? 500 : 200).end();
    const service = await heartbeat();
    await pass(3 * MINUTE);
    expect(hook.gets).toBe(0);
    await database.sql`update ops.account set refused_at = null`;
    await comes(() => expect(hook.gets).toBe(2));
    expect(service.log()).toMatch(/the heartbeat monitor: 127\.0\.0\.1:\d+ answered 500/);
    expect(service.log()).not.toContain(hook.secret);
  });
});

describe('a webhook that does not accept a notice', () => {
  test('is tried again with backoff, and the log and the metrics show it', async () => {
    let answered = 0;
    hook.answer = (_, response) => void response.writeHead(++answered < 3 ? 500 : 200).end();
    await spend(1000);
    const service = await notifier(NO_SCHEDULES);
    await comes(() => expect(service.incidents()).toEqual([expect.stringMatching(/^the webhook: .* answered 500$/)]));
    await comes(() => expect(answered).toBe(3));
    await comes(async () => expect(await service.metrics()).toMatch(/outcome="sent"\} 1$/m));
    expect(await service.metrics()).toMatch(/^chandler_notices_total\{event="quota",outcome="failed"\} 2$/m);
    expect(service.incidents()).toEqual([]);
    expect(service.log()).toMatch(/"the webhook recovered"/);
    expect(service.log()).not.toContain(hook.secret);
    const [row] = await database.sql`select attempts, sent_at is not null as sent, due_at from ops.notice`;
    expect(row).toEqual({ attempts: 3, sent: true, dueAt: null });
  });

  test('that asks for a wait of a day is tried again in half an hour', async () => {
    hook.answer = (_, response) => void response.writeHead(429, { 'retry-after': '86400' }).end('later');
    await spend(1000);
    const service = await notifier(NO_SCHEDULES);
    await comes(() => expect(service.log()).toMatch(/the webhook: .* answered 429/));
    const [row] = await database.sql<{ minutes: number }[]>`
      select extract(epoch from due_at - raised_at)::float8 / 60 as minutes from ops.notice`;
    expect(row!.minutes).toBeGreaterThan(29);
    expect(row!.minutes).toBeLessThan(35);
  });

  test('does not delay a service that stops, and the next service sends the notice', async () => {
    const hung = vi.fn();
    hook.answer = hung;
    await spend(1000);
    const service = await notifier(NO_SCHEDULES);
    await vi.waitFor(() => expect(hung).toHaveBeenCalled(), { timeout: 60_000 });
    await service.stop();
    const [row] = await database.sql`select attempts, sent_at from ops.notice`;
    expect(row).toEqual({ attempts: 0, sentAt: null });
    hook.answer = null;
    await notifier(NO_SCHEDULES);
    await texts(1);
  });

  test('is given up after a day, and at once when it refuses the text itself', async () => {
    const notice = { event: 'history-limit', text: 'old', quietMs: 0 } as const;
    await raiseNotice(database.sql, { ...notice, topic: 'old' }, START - 25 * HOUR);
    await raiseNotice(database.sql, { ...notice, topic: 'wrong', text: 'wrong' }, START);
    hook.answer = (_, response) => void response.writeHead(hook.posts.length === 1 ? 503 : 400).end('no');
    const service = await notifier(NO_SCHEDULES);
    await comes(() => expect(service.log().match(/could not be delivered/g)).toHaveLength(2));
    expect(await database.sql`select text, message from ops.notice where due_at is null order by id`).toEqual([
      { text: 'old', message: expect.stringMatching(/answered 503 \(no\)$/) },
      { text: 'wrong', message: expect.stringMatching(/answered 400 \(no\)$/) },
    ]);
  });

  test('gets a limited number of notices an hour, in order, and each from one service only', async () => {
    for (const i of [1, 2, 3])
      await raiseNotice(database.sql, { event: 'history-limit', topic: `${i}`, text: `${i}`, quietMs: 0 }, START);
    const claim = (now: number, owner = 'one') => claimNotice(database.sql, { owner, now, mostPerHour: 2 });
    const took = async (now: number) => {
      const both = await Promise.all([claim(now, 'one'), claim(now, 'two')]);
      const mine = both.find((notice) => notice !== null) ?? null;
      expect(both.filter((notice) => notice !== null)).toHaveLength(mine === null ? 0 : 1);
      const owner = both[0] === null ? 'two' : 'one';
      if (mine !== null) await endNotice(database.sql, { id: mine.id, owner, now }, { state: 'sent' });
      return mine?.text ?? null;
    };
    expect(await took(START + 1)).toBe('1');
    expect(await took(START + 2)).toBe('2');
    expect(await took(START + 3)).toBe(null);
    expect(await took(START + HOUR)).toBe(null);
    expect(await took(START + HOUR + 1)).toBe('3');
    expect(await took(START + 3 * HOUR)).toBe(null);
  });
});

test('the service sends notices, and its log and its metrics never show the address of the webhook', async () => {
  await database.sql`
    insert into ops.quota (account_id, day_start, day_spent, month_start, month_spent)
    values (${ACCOUNT}, date_trunc('day', now()), 1000, date_trunc('month', now()), 1000)`;
  const stop = new AbortController();
  hook.answer = (request, response) => void response.writeHead(500).end(`at ${request.url}`);
  let err = '';
  const ended = runCommand(['service', '--role', 'http'], {
    env: {
      DATABASE_URL: database.url,
      CHANDLER_BASE_URL: 'http://127.0.0.1:9/v1',
      CHANDLER_LISTEN: '127.0.0.1:0',
      CHANDLER_WEBHOOK_URL: hook.url,
      CHANDLER_DAILY_REQUESTS: '1000',
      LOG_LEVEL: 'trace',
    },
    signal: stop.signal,
    onError: (text) => {
      err = text;
    },
  });
  await vi.waitFor(() => expect(err).toMatch(/the webhook: 127\.0\.0\.1:\d+ answered 500/), { timeout: 60_000 });
  const url = /"url":"(http:[^"]+)"/.exec(err)![1]!;
  const health = await (await fetch(`${url}/health`)).text();
  const figures = await (await fetch(`${url}/metrics`)).text();
  expect(health).toMatch(/the webhook/);
  expect(figures).toMatch(/^chandler_notices_total\{event="quota",outcome="failed"\} 1$/m);
  stop.abort();
  expect((await ended).code).toBe(0);
  for (const text of [err, health, figures]) {
    expect(text).not.toContain(hook.secret);
    expect(text).not.toContain(hook.url);
  }
});
