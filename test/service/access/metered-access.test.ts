import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Admission, Caller } from '../../../src/contract/plan/access.ts';
import { makeApiKey } from '../../../src/core/caller/api-key.ts';
import { DAY } from '../../../src/core/interval.ts';
import { createMeteredAccess, type MeteredAccess } from '../../../src/service/access/metered-access.ts';
import { createService } from '../../../src/service/service.ts';
import { createMadeUpMarket } from '../../../src/simulator/made-up/made-up.ts';
import { createMadeUpWorld } from '../../../src/simulator/made-up/made-up-world.ts';
import { type ApiKeyTerms, createApiKey, revokeApiKey } from '../../../src/store/callers/api-key.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { until } from '../../support/until.ts';
import { createVirtualClock, type VirtualClock } from '../../support/virtual-clock.ts';

const NOON = Date.UTC(2026, 10, 3, 12);
const onError = (error: unknown) => {
  throw error;
};

let database: TestDatabase;
let clock: VirtualClock;
let opened: MeteredAccess[];
/** Its background work is done, and it sleeps until the next time. A clock that moved sooner would skip that time. */
const isAsleep = () => until(() => clock.sleepers() === 1);
beforeEach(async () => {
  database = await createTestDatabase();
  clock = createVirtualClock(NOON);
  opened = [];
});
afterEach(async () => {
  await Promise.all(opened.map((access) => access.close()));
  await database.drop();
});

function open(limits = true, told: (error: Error) => void = onError): MeteredAccess {
  const access = createMeteredAccess({ sql: database.sql, clock, limits, onError: told });
  opened.push(access);
  return access;
}

const statusOf = (answer: Admission) => (answer.kind === 'rejected' ? answer.status : 200);
const anonymous = (address: string): Caller => ({ key: null, scheme: null, address });
const holder = (key: string, scheme: 'bearer' | 'bare' = 'bearer'): Caller => ({ key, scheme, address: '192.0.2.1' });

async function make(terms: Partial<ApiKeyTerms> = {}) {
  const made = makeApiKey();
  const all = {
    name: null,
    plan: 'free',
    requestsPerMonth: null,
    requestsPerSecond: 1_000_000,
    expiresAt: null,
    isOperator: false,
  };
  const row = await createApiKey(database.sql, { ...all, ...terms }, { ...made, now: clock.now() });
  return { ...made, row };
}

/** Sends requests, a hundred at once, until one is refused, and at most `most`. */
async function askUntilRefused(
  accesses: readonly MeteredAccess[],
  caller: Caller,
  most: number,
): Promise<{ admitted: number; refused: Admission | undefined }> {
  let admitted = 0;
  for (let asked = 0; asked < most; asked += 100) {
    // Callers without a key ask no faster than their rate limit allows.
    if (caller.key === null) clock.advance(10_000);
    const answers = await Promise.all(
      Array.from({ length: caller.key === null ? 10 : 100 }, (_, i) =>
        accesses[i % accesses.length]!.admit(caller, 'data'),
      ),
    );
    admitted += answers.filter((answer) => answer.kind === 'admitted').length;
    const refused = answers.find((answer) => answer.kind === 'rejected');
    if (refused) return { admitted, refused };
  }
  return { admitted, refused: undefined };
}

const spent = async (subject: string) => {
  const [row] = await database.sql<{ month: number; day: number }[]>`
    select month_spent::int as month, day_spent::int as day from ops.api_usage where subject = ${subject}`;
  return row;
};

describe('limits', () => {
  test('a key gets exactly the requests of its month, however many processes serve it', async () => {
    const { key, row } = await make({ requestsPerMonth: 1_234 });
    const processes = [open(), open(), open()];
    const { admitted, refused } = await askUntilRefused(processes, holder(key), 5_000);
    // The other processes may hold a few requests that this one could not use.
    const late = await Promise.all(
      processes.flatMap((access) => Array.from({ length: 300 }, () => access.admit(holder(key), 'data'))),
    );
    expect(admitted + late.filter((answer) => answer.kind === 'admitted').length).toBe(1_234);
    const toDecember = (Date.UTC(2026, 11, 1) - clock.now()) / 1000;
    expect(refused).toEqual({
      kind: 'rejected',
      status: 402,
      message: 'you have reached maximum request limit',
      retryAfterSeconds: toDecember,
      allowance: { limit: 1_234, remaining: 0, resetSeconds: toDecember },
    });
    expect(await spent(`key:${row.id}`)).toMatchObject({ month: 1_234 });
    clock.advance(30 * DAY);
    expect(await processes[0]!.admit(holder(key), 'data')).toMatchObject({ kind: 'admitted', plan: 'free' });
  });

  test('an address without a key gets a thousand requests a day, and a thousand more the next day', async () => {
    const access = open();
    const ask = () => askUntilRefused([access], anonymous('192.0.2.7'), 20_000);
    const { admitted, refused } = await ask();
    expect(admitted).toBe(1_000);
    expect(refused).toMatchObject({ status: 429, allowance: { limit: 1_000, remaining: 0 } });
    expect(await access.admit(anonymous('192.0.2.8'), 'data')).toMatchObject({ kind: 'admitted', plan: 'free' });
    clock.advance(DAY);
    expect((await ask()).admitted).toBe(1_000);
  });

  test('an IPv6 network counts as one caller, and a mapped IPv4 address as the plain one', async () => {
    const access = open();
    await access.admit(anonymous('2001:db8:1:2::1'), 'data');
    await access.admit(anonymous('2001:db8:1:2:ffff::9'), 'data');
    await access.admit(anonymous('::ffff:192.0.2.9'), 'data');
    await access.close();
    expect(await spent('address:2001:db8:1:2::/64')).toEqual({ month: 2, day: 2 });
    expect(await spent('address:192.0.2.9')).toEqual({ month: 1, day: 1 });
  });

  test('of eleven requests at once, ten are admitted; the eleventh must wait and is not counted', async () => {
    const access = open();
    const answers = await Promise.all(Array.from({ length: 11 }, () => access.admit(anonymous('192.0.2.7'), 'data')));
    expect(answers.slice(0, 10).every((answer) => answer.kind === 'admitted')).toBe(true);
    expect(answers[10]).toEqual({
      kind: 'rejected',
      status: 429,
      message: 'you have reached maximum request limit',
      retryAfterSeconds: 1,
      waitMs: 100,
      allowance: { limit: 10, remaining: 0, resetSeconds: 1 },
    });
    clock.advance(100);
    expect(await access.admit(anonymous('192.0.2.7'), 'data')).toMatchObject({ kind: 'admitted' });
    await access.close();
    expect(await spent('address:192.0.2.7')).toEqual({ month: 11, day: 11 });
  });

  test('a refusal has headers that name the limit and when to retry', async () => {
    const world = createMadeUpWorld({ seed: 1, coins: 2 });
    const data = createMadeUpMarket({ world, clock });
    const serve = createService({ data, access: open(), clock, onError });
    const ask = async (key: string, path: string) => {
      const headers = { Authorization: `Bearer ${key}` };
      return serve(new Request(`http://service/v1${path}`, { headers }));
    };
    const told = ({ status, headers }: Response) => [
      status,
      ...['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset', 'Retry-After'].map((name) => headers.get(name)),
    ];
    const toDecember = String((Date.UTC(2026, 11, 1) - clock.now()) / 1000);
    const { key } = await make({ requestsPerMonth: 3, requestsPerSecond: 2 });
    expect(told(await ask(key, '/global'))).toEqual([200, '3', '2', toDecember, null]);
    expect(told(await ask(key, '/tickers/nobody'))).toEqual([404, '3', '1', toDecember, null]);
    expect(told(await ask(key, '/global'))).toEqual([429, '2', '0', '1', '1']);
    // The rate limit also holds for requests about the account.
    expect(told(await ask(key, '/users/me'))).toEqual([429, '2', '0', '1', '1']);
    clock.advance(1_000);
    expect(told(await ask(key, '/global'))[0]).toBe(200);
    const later = String(Number(toDecember) - 1);
    expect(told(await ask(key, '/global'))).toEqual([402, '3', '0', later, later]);
    // One request in four seconds.
    const slow = await make({ requestsPerSecond: 0.25 });
    expect(told(await ask(slow.key, '/global'))[0]).toBe(200);
    expect(told(await ask(slow.key, '/global'))).toEqual([429, '1', '0', '4', '4']);
  });

  test('tool calls get the same headers; a batch gets those of its last call', async () => {
    const world = createMadeUpWorld({ seed: 1, coins: 2 });
    const data = createMadeUpMarket({ world, clock });
    const serve = createService({ data, access: open(), clock, onError });
    const { key } = await make({ requestsPerMonth: 4, requestsPerSecond: null });
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'getGlobal', arguments: {} } };
    const ask = async (body: unknown, accept = 'application/json') => {
      const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', Accept: accept };
      const answer = await serve(
        new Request('http://service/rpc', { method: 'POST', headers, body: JSON.stringify(body) }),
      );
      await answer.text();
      return ['RateLimit-Limit', 'RateLimit-Remaining'].map((name) => answer.headers.get(name));
    };
    expect(await ask(call)).toEqual(['4', '3']);
    expect(await ask([call, { ...call, id: 2 }])).toEqual(['4', '1']);
    // Listing tools costs nothing.
    expect(await ask({ jsonrpc: '2.0', id: 3, method: 'tools/list' })).toEqual([null, null]);
    expect(await ask(call, 'application/json, text/event-stream')).toEqual(['4', '0']);
    expect(await ask(call)).toEqual(['4', '0']);
  });

  test('with limits switched off, every caller may read everything and nothing is counted', async () => {
    const access = open(false);
    const answers = await Promise.all(Array.from({ length: 50 }, () => access.admit(anonymous('192.0.2.7'), 'data')));
    expect(answers).toEqual(Array.from({ length: 50 }, () => ({ kind: 'admitted', plan: 'enterprise' })));
    expect(access.refuseHistory('free', '5m', 0)).toBeNull();
    expect(await spent('address:192.0.2.7')).toBeUndefined();
  });

  test('an unlimited key has no rate limit and no monthly limit, and its requests are counted for the operator', async () => {
    const { key, row } = await make({ plan: 'unlimited', requestsPerSecond: null });
    const access = open();
    expect((await askUntilRefused([access], holder(key), 500)).admitted).toBe(500);
    expect(await access.account(holder(key))).toMatchObject({
      plan: 'enterprise',
      usage: { message: 'unlimited plan', current_month: { requests_made: -1, requests_left: -1 } },
    });
    await access.close();
    expect(await spent(`key:${row.id}`)).toMatchObject({ month: 500 });
  });
});

describe('the rate limit', () => {
  /** How many requests are admitted when every process sends as fast as it can, all the time. */
  async function askAllTheTime(processes: readonly MeteredAccess[], caller: Caller, seconds: number): Promise<number> {
    let admitted = 0;
    for (let ms = 0; ms < seconds * 1_000; ms += 50) {
      for (let i = 0; i < 5; i++) {
        const answers = await Promise.all(processes.map((access) => access.admit(caller, 'data')));
        admitted += answers.filter(({ kind }) => kind === 'admitted').length;
      }
      clock.advance(50);
    }
    return admitted;
  }
  const countWrites = async () => {
    await database.sql`create sequence writes`.simple();
    await database.sql`
      create function count_write() returns trigger language plpgsql as $$ begin perform nextval('writes'); return null; end $$;
      create trigger count_write after insert or update on ops.api_pace for each row execute function count_write()`.simple();
    return async () => (await database.sql<{ n: number }[]>`select last_value::int as n from writes`)[0]!.n;
  };

  test.each([2, 5])(
    'of a caller holds across %i processes, within one bucket, without a write for each request',
    async (n) => {
      const { key } = await make({ plan: 'enterprise', requestsPerSecond: 10 });
      const processes = Array.from({ length: n }, () => open());
      const written = await countWrites();
      const admitted = await askAllTheTime(processes, holder(key), 6);
      // A full bucket, ten a second, and at most one bucket more.
      expect(admitted).toBeGreaterThanOrEqual(10 + 59);
      expect(admitted).toBeLessThanOrEqual(10 + 60 + 10);
      // Half a write per request, and the leases.
      expect(await written()).toBeLessThan(0.75 * admitted);
      // What was admitted above the limit is paid back: two seconds later, only two seconds' worth is added.
      const more = await askAllTheTime(processes, holder(key), 4);
      expect(admitted + more).toBeLessThanOrEqual(10 + 100 + 10);
    },
  );

  test('also holds for callers without a key, whose requests alternate between processes', async () => {
    const processes = [open(), open()];
    let admitted = 0;
    for (let i = 0; i < 60; i++) {
      const answer = await processes[i % 2]!.admit(anonymous('192.0.2.7'), 'data');
      if (answer.kind === 'admitted') admitted++;
      clock.advance(50);
    }
    expect(admitted).toBeGreaterThanOrEqual(10 + 28);
    expect(admitted).toBeLessThanOrEqual(10 + 30 + 2);
  });

  test('writes nothing for a caller far below it, and forgets what another process took long ago', async () => {
    const { key } = await make({ plan: 'enterprise', requestsPerSecond: 1_000 });
    const access = open();
    for (let i = 0; i < 150; i++) await access.admit(holder(key), 'data');
    await access.close();
    expect(await database.sql`select * from ops.api_pace`).toEqual([]);
    await database.sql`insert into ops.api_pace values ('key:1', ${NOON - 2 * DAY}), ('key:2', ${NOON - 1_000})`;
    open();
    await expect.poll(() => database.sql`select subject from ops.api_pace`).toEqual([{ subject: 'key:2' }]);
  });

  test('holds within each process while the database cannot be written', async () => {
    const { key } = await make({ plan: 'unlimited', requestsPerSecond: 10 });
    const told: Error[] = [];
    const access = open(true, (error) => told.push(error));
    await access.admit(holder(key), 'data');
    await database.sql`alter table ops.api_pace rename to api_pace_gone`;
    const answers = await Promise.all(Array.from({ length: 30 }, () => access.admit(holder(key), 'data')));
    expect(answers.filter(({ kind }) => kind === 'admitted')).toHaveLength(9);
    expect(told[0]?.message).toContain('api_pace');
  });

  test('does not wait while a transaction holds the row of a caller: each process grants its share, then refuses', async () => {
    const { key, row } = await make({ plan: 'enterprise', requestsPerSecond: 10 });
    const other = await make({ plan: 'enterprise', requestsPerSecond: 10 });
    const told: Error[] = [];
    const processes = [0, 1, 2].map(() => open(true, (error) => told.push(error)));
    // The database has both buckets, and both are full again.
    for (const access of processes)
      for (const { key: one } of [{ key }, other]) for (let i = 0; i < 2; i++) await access.admit(holder(one), 'data');
    clock.advance(5_000);
    const ask = (one: string, times: number) =>
      Promise.all(
        processes.flatMap((access) => Array.from({ length: times }, () => access.admit(holder(one), 'data'))),
      );
    const admittedOf = (answers: readonly Admission[]) => answers.filter(({ kind }) => kind === 'admitted').length;
    await database.sql.begin(async (tx) => {
      await tx`select from ops.api_pace where subject = ${`key:${row.id}`} for update`;
      const began = performance.now();
      let admitted = 0;
      for (let i = 0; i < 5; i++) {
        const answers = await ask(key, 4);
        admitted += admittedOf(answers);
        expect(answers.at(-1)).toMatchObject({ kind: 'rejected', status: 429, retryAfterSeconds: 1 });
        clock.advance(300);
      }
      // A fifth of a bucket per process.
      expect(admitted).toBe(3 * 2);
      // What is written meanwhile belongs to another caller, whom the lock does not affect.
      expect(admittedOf(await ask(other.key, 2))).toBe(3 * 2);
      // Less than the half minute after which Postgres would give up.
      expect(performance.now() - began).toBeLessThan(10_000);
    });
    expect(new Set(told.map(({ message }) => message))).toEqual(
      new Set([
        'another session locks the row of a caller in ops.api_pace; the caller is refused until that session releases it',
      ]),
    );
    clock.advance(1_000);
    // What was admitted meanwhile counts now: 2 s refill the bucket.
    const admitted = admittedOf(await ask(key, 10));
    expect(admitted).toBeGreaterThan(0);
    expect(admitted).toBeLessThanOrEqual(10 + 3 * 2);
    const [{ n }] = (await database.sql`
      select count(*)::int as n from ops.api_pace where full_at > ${clock.now()} and subject = ${`key:${row.id}`}`) as unknown as [
      { n: number },
    ];
    expect(n).toBe(1);
  });

  test('recovers from a bucket that was written before the clock was set back', async () => {
    const { key, row } = await make({ plan: 'unlimited', requestsPerSecond: 10 });
    await database.sql`insert into ops.api_pace values (${`key:${row.id}`}, ${NOON + DAY})`;
    const answers = await Promise.all(Array.from({ length: 30 }, () => open().admit(holder(key), 'data')));
    expect(answers.some(({ kind }) => kind === 'admitted')).toBe(true);
    expect(await askAllTheTime(opened.slice(0, 2), holder(key), 2)).toBeGreaterThan(10);
  });
});

describe('counting', () => {
  test('needs far fewer statements than requests', async () => {
    const { key, row } = await make({ plan: 'starter' });
    await database.sql`create sequence statements`.simple();
    await database.sql`
      create function count_statement() returns trigger language plpgsql as $$ begin perform nextval('statements'); return null; end $$;
      create trigger count_statement after update on ops.api_usage execute function count_statement()`.simple();
    const access = open();
    expect((await askUntilRefused([access], holder(key), 5_000)).admitted).toBe(5_000);
    const [statements] = await database.sql<{ n: number }[]>`select last_value::int as n from statements`;
    expect(statements!.n).toBeLessThan(100);
    // All requests, and at most one lease that is not used yet.
    const counted = (await spent(`key:${row.id}`))!.month;
    expect(counted).toBeGreaterThanOrEqual(5_000);
    expect(counted).toBeLessThanOrEqual(5_000 + 2 * 256);
    await access.close();
    expect(await spent(`key:${row.id}`)).toMatchObject({ month: 5_000 });
  });

  test('keeps the lease of a process that died: the count is never too low', async () => {
    const { key, row } = await make({ requestsPerMonth: 1_000 });
    const dead = open(true, () => undefined);
    opened.pop();
    expect((await askUntilRefused([dead], holder(key), 300)).admitted).toBe(300);
    const counted = (await spent(`key:${row.id}`))!.month;
    const { admitted } = await askUntilRefused([open()], holder(key), 5_000);
    expect(300 + admitted).toBeLessThanOrEqual(1_000);
    expect(300 + admitted).toBeGreaterThanOrEqual(1_000 - (counted - 300));
  });

  test('returns the lease of a caller that is silent', async () => {
    const { key, row } = await make();
    const access = open();
    await access.admit(holder(key), 'data');
    expect(await spent(`key:${row.id}`)).toMatchObject({ month: 4 });
    for (let i = 0; i < 6; i++) {
      await isAsleep();
      clock.advance(5_000);
    }
    await expect.poll(() => spent(`key:${row.id}`)).toMatchObject({ month: 1 });
  });

  test('loses no lease that is held over midnight, neither of a key nor of the month of an address', async () => {
    const { key, row } = await make({ plan: 'starter' });
    const access = open();
    const network = anonymous('192.0.2.7');
    const askBoth = async () => [await access.admit(holder(key), 'data'), await access.admit(network, 'data')];
    for (let i = 0; i < 5; i++) await askBoth();
    clock.advance(DAY);
    for (let i = 0; i < 3; i++) await askBoth();
    await access.close();
    await expect.poll(() => spent('address:192.0.2.7')).toEqual({ month: 8, day: 3 });
    expect(await spent(`key:${row.id}`)).toMatchObject({ month: 8 });
  });

  test('forgets addresses that are silent for months, and keeps keys', async () => {
    await database.sql`
      insert into ops.api_usage (subject, month_start, month_spent, day_start, day_spent, updated_at)
      select s, t, 1, t, 1, t from unnest(array['address:192.0.2.7', 'key:1']) s, (select ${NOON - 63 * DAY}::timestamptz as t) x`;
    open();
    await expect.poll(() => spent('address:192.0.2.7')).toBeUndefined();
    expect(await spent('key:1')).toBeDefined();
    // And once a day from then on.
    await database.sql`
      insert into ops.api_usage (subject, month_start, month_spent, day_start, day_spent, updated_at)
      select 'address:192.0.2.8', t, 1, t, 1, t from (select ${NOON - 63 * DAY}::timestamptz as t) x`;
    await isAsleep();
    clock.advance(DAY);
    await expect.poll(() => spent('address:192.0.2.8')).toBeUndefined();
  });

  test('does not count requests about the account, which report the usage', async () => {
    const { key } = await make({ plan: 'starter' });
    const access = open();
    for (let i = 0; i < 7; i++) await access.admit(holder(key), 'data');
    await access.admit(holder(key), 'account');
    expect(await access.account(holder(key))).toEqual({
      plan: 'starter',
      plan_started_at: '2026-11-03T12:00:00Z',
      plan_status: 'active',
      portal_url: null,
      usage: { message: 'limited plan', current_month: { requests_made: 7, requests_left: 399_993 } },
    });
  });

  test('tells a refused caller that nothing is left, although a process died with a lease', async () => {
    const { key } = await make({ requestsPerMonth: 20 });
    const ask = async (access: MeteredAccess) => {
      const answer = await access.admit(holder(key), 'data');
      const { usage } = (await access.account(holder(key)))!;
      return [
        statusOf(answer),
        'allowance' in answer && answer.allowance?.remaining,
        usage.current_month.requests_left,
      ];
    };
    // Neither recorded nor returned, as after a kill.
    await open().admit(holder(key), 'data');
    const access = open();
    for (let left = 15; left >= 0; left--) expect(await ask(access)).toEqual([200, left, left]);
    expect(await ask(access)).toEqual([402, 0, 0]);
  });
});

describe('keys', () => {
  test('are accepted in either scheme; unknown and almost right keys are refused', async () => {
    const { key, prefix } = await make();
    const access = open();
    expect(await access.admit(holder(key), 'data')).toMatchObject({ kind: 'admitted' });
    expect(await access.admit(holder(key, 'bare'), 'data')).toMatchObject({ kind: 'admitted' });
    const last = key.at(-1) === 'a' ? 'b' : 'a';
    for (const wrong of ['x', prefix, key.slice(0, -1), `${key.slice(0, -1)}${last}`, `${key}a`, makeApiKey().key]) {
      clock.advance(1_000);
      expect(await access.admit(holder(wrong), 'data')).toEqual({
        kind: 'rejected',
        status: 403,
        message: 'invalid api key',
      });
      expect(await access.account(holder(wrong))).toBeNull();
    }
  });

  test('cannot be guessed faster than the rate limit, which does not slow down known keys', async () => {
    const { key } = await make();
    const access = open();
    expect(await access.admit(holder(key), 'data')).toMatchObject({ kind: 'admitted' });
    const answers = await Promise.all(Array.from({ length: 11 }, () => access.admit(holder(makeApiKey().key), 'data')));
    expect(answers.map(statusOf).sort()).toEqual([...Array.from({ length: 10 }, () => 403), 429]);
    expect(await access.admit(holder(key), 'data')).toMatchObject({ kind: 'admitted' });
  });

  test('that are valid do not count as guesses, however many share an address, even right after a start', async () => {
    const made = await Promise.all(Array.from({ length: 60 }, () => make()));
    const access = open();
    const ask = (key: string) => access.admit(holder(key), 'data');
    expect((await Promise.all(made.slice(0, 50).map(({ key }) => ask(key)))).map(statusOf)).toEqual(
      Array.from({ length: 50 }, () => 200),
    );
    // A valid key that sends many requests at once does not count either.
    const [busy, ...others] = made.slice(50).map(({ key }) => key);
    expect((await Promise.all(Array.from({ length: 30 }, () => ask(busy!)))).map(statusOf)).not.toContain(429);
    // Valid keys among guesses may be delayed, but no more guesses get an answer than without them.
    const mixed = others.flatMap((key) => [key, ...Array.from({ length: 5 }, () => makeApiKey().key)]);
    const answers = (await Promise.all(mixed.map(ask))).map(statusOf);
    expect(answers.filter((status) => status === 403)).toHaveLength(10);
    // Beyond the limit no key is looked up, not even a valid one.
    const { key } = await make();
    expect(statusOf(await ask(key))).toBe(429);
    clock.advance(1_000);
    expect(statusOf(await ask(key))).toBe(200);
  });

  test('that could not be looked up do not count as guesses', async () => {
    const away = await createTestDatabase();
    await away.drop();
    const access = createMeteredAccess({ sql: away.sql, clock, limits: true, onError: () => undefined });
    opened.push(access);
    const answers = await Promise.allSettled(
      Array.from({ length: 25 }, () => access.admit(holder(makeApiKey().key), 'data')),
    );
    // None gets a 429: every call fails because the database is unavailable.
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 25 }, () => 'rejected'));
  });

  test('are refused soon after they were revoked, and when they expire', async () => {
    const { key, prefix } = await make();
    const { key: brief } = await make({ expiresAt: NOON + 60_000 });
    const access = open();
    expect(await access.admit(holder(key), 'data')).toMatchObject({ kind: 'admitted' });
    expect(await access.admit(holder(brief), 'data')).toMatchObject({ kind: 'admitted' });
    await revokeApiKey(database.sql, prefix, clock.now());
    clock.advance(2_001);
    expect(await access.admit(holder(key), 'data')).toMatchObject({ status: 403 });
    clock.advance(57_998);
    expect(await access.admit(holder(brief), 'data')).toMatchObject({ kind: 'admitted' });
    clock.advance(1);
    expect(await access.admit(holder(brief), 'data')).toMatchObject({ status: 403 });
  });
});
