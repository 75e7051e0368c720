/**
 * Notices about a lock, about many backfills in a day, about what is no longer in the settings, and beside the heartbeat; the rest is in
 * `notifier.test.ts`.
 */
import { describe, expect, test } from 'vitest';
import { LOCK } from '../../../src/background/health/service-status.ts';
import { LOOK_MS } from '../../../src/background/operator/notifier.ts';
import { accountIdOf } from '../../../src/ingest/request/account.ts';
import {
  at,
  clock,
  comes,
  DAY,
  database,
  HOUR,
  hook,
  MINUTE,
  meanwhile,
  NO_SCHEDULES,
  notifier,
  pass,
  START,
  spend,
  texts,
  useHook,
} from './notifier.ts';

useHook();

describe('the operator gets a notice', () => {
  test('about a lock that another session holds, once, also while its other tables are locked, and when the lock is released', async () => {
    // A service waits half a minute. The machine's clock counts here, because the server waits by it.
    const impatient = { ...NO_SCHEDULES, DATABASE_URL: `${database.url}?options=-c%20lock_timeout%3D250ms` };
    const services = [await notifier(impatient), await notifier(impatient)];
    const reported = (message: string | null) => {
      for (const service of services) service.report(LOCK, message);
    };
    reported("session 7 (user 'admin') holds a lock that Chandler needs");
    await pass(MINUTE);
    expect(hook.posts).toEqual([]);
    await database.sql.begin(async (tx) => {
      await tx`lock table ops.quota, ops.fetch in access exclusive mode`;
      expect((await texts(1))[0]).toMatch(
        /^Another session locks the database since .*Z \(\d+m( \d+s)?\): session 7 \(user 'admin'\) holds a lock that Chandler needs\. /,
      );
    });
    await comes(async () =>
      expect(await services[0]!.metrics()).toMatch(/^chandler_alert\{event="upstream-down"\} 0$/m),
    );
    await pass(3 * MINUTE);
    expect(hook.posts).toHaveLength(1);
    reported(null);
    await pass(MINUTE);
    expect(hook.posts).toHaveLength(1);
    expect(await services[0]!.metrics()).toMatch(/^chandler_alert\{event="database-locked"\} 1$/m);
    expect((await texts(2))[1]).toBe(
      'Resolved: no other session holds a lock that Chandler needs, and all work goes on.',
    );
    await comes(async () =>
      expect(await services[0]!.metrics()).toMatch(/^chandler_alert\{event="database-locked"\} 0$/m),
    );
    await pass(3 * MINUTE);
    expect(hook.posts).toHaveLength(2);
  });

  test('about each of many backfills that ended within a day, and a state is reported before them', async () => {
    const ended = (n: number, requestedBy: string, minutesAgo: number) => database.sql`
      insert into ops.backfill (requested_at, started_at, finished_at, state, is_detached, spec, coin_ids, span, interval, quote,
        planned_requests, requested_by)
      select ${at(START - HOUR)}, ${at(START - HOUR)}, ${at(START - minutesAgo * MINUTE)}, 'done', true, '{}', '{btc-bitcoin}',
        '[2030-01-01, 2030-02-01)', '1h', 'usd', 3, ${requestedBy} from generate_series(1, ${n}::int)`;
    await ended(150, 'the audit of gaps', 30);
    await ended(120, 'me@here', 20);
    await notifier({ ...NO_SCHEDULES, CHANDLER_API_KEY: 'key' });
    const raised = () => database.sql<{ n: number }[]>`select count(*)::int as n from ops.notice`;
    await comes(async () => expect((await raised())[0]!.n).toBe(120));
    // More notices than may be sent in an hour. A state does not wait behind them.
    await pass(5 * MINUTE, LOOK_MS);
    expect(hook.posts.length).toBeLessThan(30);
    await database.sql`
      insert into ops.account (id, origin, plan, refused_at, refused_since, refusals, refused_scheme, refusal)
      values (${accountIdOf('key', 'http://127.0.0.1:9/v1')}, 'http://127.0.0.1:9', 'free', ${at(clock.now())}, ${at(clock.now())}, 1, 'auto', 'no')`;
    await pass(MINUTE);
    expect(hook.texts().at(-1)).toMatch(/^Key refused since /);
  });

  test('about the end of a folder or lake that is no longer in the settings', async () => {
    const since = at(START - 2 * DAY);
    await database.sql`
      insert into ops.notice (event, topic, text, raised_at, began_at, sent_at, attempts)
      select event, topic, 'told', ${since}, ${since}, ${since}, 1
      from (values ('disk', 'disk /old'), ('lake', 'lake'), ('behind', 'behind')) v(event, topic)`;
    await database.sql`
      insert into ops.watch (name, since, seen_at) select topic || ' is over', null, ${since} from ops.notice`;
    await notifier(NO_SCHEDULES);
    await pass(HOUR + MINUTE, 4 * MINUTE);
    expect(hook.texts()).toEqual([
      'Resolved: no service uses the folder /old any more.',
      'Resolved: no service uses a lake any more.',
    ]);
  });
});

describe('the heartbeat beside notices', () => {
  test('is not sent between the notice of a state and the notice of its end', async () => {
    meanwhile.add(() => database.sql`update ops.instance set heartbeat_at = ${at(clock.now() + LOOK_MS)}`);
    await database.sql`
      insert into ops.instance (owner, roles, started_at, heartbeat_at)
      values ('all', '{scheduler,worker}', ${at(START)}, ${at(START + MINUTE)})`;
    await spend(0);
    await database.sql`update ops.quota set down_streak = 4, down_at = now(), down_message = 'example.org answered 503'`;
    await notifier({ ...NO_SCHEDULES, CHANDLER_HEARTBEAT_URL: hook.url });
    await texts(1);
    const { gets } = hook;
    // The heartbeat is due.
    await pass(10 * MINUTE);
    await database.sql`update ops.quota set down_streak = 0`;
    await comes(() => {
      expect({ gets: hook.gets, texts: hook.texts().length }).toEqual({ gets: gets + 1, texts: 2 });
    });
  });
});
