/** The progress of backfills over HTTP: the same as in SQL and on the command line. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { queueBackfill } from '../../../src/store/backfill/backfill-queue.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const DAY = 86_400_000;
let database: TestDatabase;
let stop: AbortController;
let ended: Promise<unknown>;
beforeEach(async () => {
  database = await createTestDatabase();
  stop = new AbortController();
  ended = Promise.resolve();
});
afterEach(async () => {
  stop.abort();
  await ended;
  await database.drop();
});

const env = () => ({
  DATABASE_URL: database.url,
  CHANDLER_BASE_URL: 'http://127.0.0.1:9/v1',
  CHANDLER_LISTEN: '127.0.0.1:0',
});

/** Starts a service; resolves to a function that sends it a request. */
async function serve(argv: readonly string[], more: Record<string, string> = {}) {
  let err = '';
  ended = runCommand(['service', ...argv], {
    env: { ...env(), ...more },
    signal: stop.signal,
    onError: (text) => {
      err = text;
    },
  });
  const url = await vi.waitFor(
    () => {
      const found = /"url":"(http:[^"]+)"/.exec(err);
      expect(found, err).not.toBeNull();
      return found![1]!;
    },
    { timeout: 60_000 },
  );
  return async (path: string): Promise<{ readonly status: number; readonly body: unknown }> => {
    const answer = await fetch(`${url}${path}`);
    if (path === '/metrics') return { status: answer.status, body: await answer.text() };
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
    return { status: answer.status, body: (await answer.json()) as unknown };
  };
}

async function queue(plannedRequests: number, priority = 0): Promise<number> {
  const from = Date.UTC(2026, 0);
  return queueBackfill(database.sql, {
    requestedAt: from,
    spec: {},
    coinIds: ['btc-bitcoin'],
    interval: '1h',
    quote: 'usd',
    span: { from, to: from + 30 * DAY },
    plannedRequests,
    priority,
  });
}

/** How many of our connections wait for a lock with the same statement: the service also looks at its backfills on its own. */
async function waiting(): Promise<number> {
  const [row] = await database.sql<{ n: number }[]>`
    select coalesce(max(n), 0)::int as n from (
      select count(*) as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' group by query) same`;
  return row!.n;
}

describe('however many clients ask', () => {
  test.each([
    ['/metrics', 'ops.backfill', ['/metrics']],
    ['/backfills', 'ops.backfill', ['/backfills', '/backfills?all=true', '/backfills/1', '/backfills?limit=7']],
  ])('one read serves all of them: %s', async (_, locked, paths) => {
    await queue(8);
    const ask = await serve(['--role', 'http']);
    await vi.waitFor(async () => expect((await ask('/backfills')).status).toBe(200), { timeout: 60_000 });
    // Until the result that was read just now has expired.
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    let asking: Promise<{ readonly status: number }[]> = Promise.resolve([]);
    const { most } = await database.sql.begin(async (tx) => {
      await tx`lock table ${tx(locked)} in access exclusive mode`;
      asking = Promise.all(Array.from({ length: 10 }, () => paths.map((path) => ask(path))).flat());
      await vi.waitFor(async () => expect(await waiting()).toBeGreaterThan(0), { timeout: 60_000 });
      await new Promise((resolve) => setTimeout(resolve, 300));
      return { most: await waiting() };
    });
    expect(most).toBe(1);
    const answers = await asking;
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  });

  test('while the database does not answer, they all get an error after the same time, and none waits for the others', async () => {
    const ask = await serve(['--role', 'http']);
    await vi.waitFor(async () => expect((await ask('/backfills')).status).toBe(200), { timeout: 60_000 });
    const answered: string[] = [];
    const note = async (path: string) => {
      answered.push(`${path} ${(await ask(path)).status}`);
    };
    const paths = Array.from({ length: 6 }, (_, i) => `/backfills/${i + 1}`);
    let metrics: Promise<void> = Promise.resolve();
    await database.sql.begin(async (tx) => {
      await tx`lock table ops.backfill in access exclusive mode`;
      const all = paths.map(note);
      await Promise.race(all);
      // Takes as long as the first of them took.
      metrics = note('/metrics');
      await Promise.all(all);
    });
    await metrics;
    expect(answered.at(-1)).toBe('/metrics 200');
    expect(answered.slice(0, -1).sort()).toEqual(paths.map((path) => `${path} 503`));
  });

  test('a result is shared for a second, and a single backfill is read separately', async () => {
    await queue(8);
    await database.sql`create sequence asked`.simple();
    await database.sql`
      alter view ops.backfill_progress rename to backfill_progress_uncounted;
      create view ops.backfill_progress as
        select p.* from (select nextval('asked') as n) counted, ops.backfill_progress_uncounted p where counted.n > 0`.simple();
    const ask = await serve(['--role', 'http']);
    await vi.waitFor(async () => expect((await ask('/backfills')).status).toBe(200), { timeout: 60_000 });
    const readings = async () => (await database.sql<{ n: number }[]>`select last_value::int as n from asked`)[0]!.n;
    const before = await readings();
    const begun = Date.now();
    for (let i = 0; i < 40; i++) await ask(`/backfills?limit=${i + 1}`);
    expect((await readings()) - before).toBeLessThanOrEqual(1 + (Date.now() - begun) / 1_000);
    expect((await ask('/backfills/1')).body).toMatchObject({ id: 1, plannedRequests: 8 });
    await database.sql`update ops.backfill set planned_requests = 9`;
    await vi.waitFor(async () => expect((await ask('/backfills/1')).body).toMatchObject({ plannedRequests: 9 }), {
      timeout: 60_000,
    });
  });
});

describe('/backfills', () => {
  test('lists open backfills, most urgent first, or one by its number, as the command line prints them', async () => {
    await queue(8);
    await queue(4, 5);
    await database.sql`update ops.backfill set left_requests = 6 where id = 1`;
    await queue(2);
    await database.sql`update ops.backfill set state = 'done', left_requests = 0, finished_at = now() where id = 3`;
    const ask = await serve(['--role', 'http']);
    const list = JSON.parse((await runCommand(['backfills', 'list', '--json'], { env: env() })).out);
    await vi.waitFor(async () => expect((await ask('/backfills')).status).toBe(200), { timeout: 60_000 });
    expect((await ask('/backfills')).body).toEqual(list);
    expect(list).toMatchObject([
      { id: 2, state: 'queued', priority: 5, plannedRequests: 4, leftRequests: 4, spent: 0, progress: 0 },
      { id: 1, leftRequests: 6, progress: 0.25, from: '2026-01-01T00:00:00.000Z', finishAt: null },
    ]);
    const all = JSON.parse((await runCommand(['backfills', 'list', '--all', '--json'], { env: env() })).out);
    expect(all).toHaveLength(3);
    expect((await ask('/backfills?all=true')).body).toEqual(all);
    expect((await ask('/backfills?all=true&limit=1')).body).toEqual(all.slice(0, 1));
    expect(await ask('/backfills/3')).toEqual({ status: 200, body: expect.objectContaining({ id: 3, progress: 1 }) });
  });

  test('says what is wrong with a request', async () => {
    const ask = await serve(['--role', 'http']);
    await vi.waitFor(async () => expect((await ask('/backfills')).status).toBe(200), { timeout: 60_000 });
    const answers: readonly [string, number, string][] = [
      ['/backfills/4', 404, 'there is no backfill 4; /backfills?all=true lists all'],
      ['/backfills/first', 400, '"first" is not the number of a backfill; example: /backfills/12'],
      ['/backfills/0', 400, '"0" is not the number of a backfill; example: /backfills/12'],
      ['/backfills/99999999999', 400, '"99999999999" is not the number of a backfill; example: /backfills/12'],
      ['/backfills?all=yes', 400, 'all must be true or false, got "yes"'],
      ['/backfills?limit=0', 400, 'limit must be a whole number from 1 to 1000, got "0"'],
      ['/backfills?state=done', 400, '"state" is not a parameter; the parameters are all and limit'],
      ['/health/x', 404, 'the paths here are /health, /ready, /metrics, /backfills and /backfills/<id>'],
    ];
    for (const [path, status, error] of answers) expect(await ask(path)).toEqual({ status, body: { error } });
  });

  test('answers 503 while there is no database', async () => {
    const ask = await serve(['--role', 'http'], { DATABASE_URL: 'postgres://u@127.0.0.1:1/x' });
    const body = { error: 'the database is unavailable; /health says why' };
    expect(await ask('/backfills')).toEqual({ status: 503, body });
    expect(await ask('/backfills/1')).toEqual({ status: 503, body });
    expect((await ask('/backfills/x')).status).toBe(400);
  });

  test('counts finished backfills as notices do: the same failure of each day is one', async () => {
    const ended = (state: string, by: string, message: string | null) => database.sql`
      insert into ops.backfill (requested_at, started_at, finished_at, state, is_detached, spec, coin_ids, span, interval, quote,
        planned_requests, requested_by, message)
      values (now(), now(), now(), ${state}, true, ${by === 'the audit of gaps' ? '{"history": "1h usd"}' : '{}'}::text::jsonb, '{btc-bitcoin}',
        '[2030-01-01, 2030-02-01)', '1h', 'usd', 3, ${by}, ${message})`;
    for (const slots of [3, 2, 1])
      await ended('failed', 'the audit of gaps', `left: ${slots} slot${slots === 1 ? '' : 's'} refused`);
    await ended('failed', 'the audit of gaps', 'left: 4 slots malformed');
    await ended('failed', 'me@here', 'left: 4 slots malformed');
    await ended('done', 'the audit of gaps', null);
    await ended('done', 'me@here', null);
    const ask = await serve(['--role', 'http']);
    await vi.waitFor(
      async () => {
        const text = (await ask('/metrics')).body as string;
        expect(text).toMatch(/^chandler_backfills_ended\{state="failed"\} 3$/m);
        expect(text).toMatch(/^chandler_backfills_ended\{state="done"\} 1$/m);
      },
      { timeout: 60_000 },
    );
  });

  test('gives each an ETA: after the hold of the account, and after the backfills before it', async () => {
    const tomorrow = Math.ceil(Date.now() / DAY) * DAY;
    await database.sql`
      insert into ops.quota (account_id, exhausted_until, exhausted_message)
      values ('anonymous@127.0.0.1:9', ${tomorrow}, 'the day is spent')`;
    // Paused or ended: no other backfill waits for those.
    await queue(1_000, 9);
    await database.sql`update ops.backfill set state = 'paused'`;
    const first = await queue(700, 5);
    const second = await queue(700);
    const ask = await serve(['--role', 'scheduler,http'], {
      CHANDLER_DAILY_REQUESTS: '1000',
      CHANDLER_MONTHLY_REQUESTS: 'unlimited',
    });
    const read = async (id: number) => ((await ask(`/backfills/${id}`)).body as { finishAt: string | null }).finishAt;
    const finishOf = async (id: number) => Date.parse((await read(id)) ?? '');
    await vi.waitFor(async () => expect(await finishOf(second)).toBeGreaterThan(tomorrow + DAY), { timeout: 60_000 });
    expect(await finishOf(first)).toBeGreaterThanOrEqual(tomorrow);
    expect(await finishOf(first)).toBeLessThan(tomorrow + DAY);
    expect(await read(1)).toBe(null);
  });
});
