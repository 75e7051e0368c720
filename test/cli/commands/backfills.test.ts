import { hostname } from 'node:os';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Listening, listen } from '../../../src/service/http/listen.ts';
import { createSimulator } from '../../../src/simulate.ts';
import { startBackfill } from '../../../src/store/backfill/backfill.ts';
import { keepInstance } from '../../../src/store/work/instance.ts';
import { runCommand } from '../../support/cli.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { createJumpingClock } from '../../support/jumping-clock.ts';

const NOON = Date.UTC(2026, 10, 3, 12);
const clock = createJumpingClock({ speed: 1, startAt: NOON });
let server: Listening;
let database: TestDatabase;
let env: Record<string, string>;
const chandler = (...argv: string[]) => runCommand(argv, { env, clock });
const detach = (...more: string[]) => chandler('backfill', '--top', '3', '--start', '-30d', '--detach', ...more);

beforeAll(async () => {
  const onError = (error: unknown) => {
    throw error;
  };
  server = await listen(createSimulator({ market: 'made-up', coins: 20, clock, unlimited: true, onError }).fetch, {
    host: '127.0.0.1',
    port: 0,
  });
});
afterAll(() => server.close());
beforeEach(async () => {
  database = await createTestDatabase();
  env = { DATABASE_URL: database.url, CHANDLER_BASE_URL: `${server.url}/v1`, CHANDLER_PLAN: 'enterprise' };
});
afterEach(() => database.drop());

describe('backfill --detach', () => {
  test('shows the cost, records the backfill, and says which service will run it', async () => {
    const alone = await detach();
    expect(alone).toMatchObject({ code: 0, err: '' });
    expect(alone.out).toContain(
      '\nBackfill 1 is recorded; no service is running: start one with chandler service to run it. chandler backfills list shows its progress.\n',
    );
    const service = { owner: 'host:1', startedAt: NOON, heartbeatAt: clock.now() };
    await keepInstance(database.sql, { ...service, roles: ['http'] });
    expect((await detach()).out).toContain('no service is running');
    await keepInstance(database.sql, { ...service, roles: ['worker'] });
    expect((await detach()).out).toContain('\nBackfill 3 is recorded; the service runs it. ');
    // The span is wanted from now on, so the gaps show it.
    const { out } = await chandler('gaps', '--json');
    expect(JSON.parse(out)).toHaveLength(3);
  });

  test.each([
    [['--detach', '--max-wait', '1h'], /--max-wait cannot be combined with --detach/],
    [['--detach', '--concurrency', '2'], /--concurrency cannot be combined with --detach/],
    [['--priority', '2'], /--priority needs --detach: only the service runs/],
    [['--detach', '--priority', '101'], /whole number from -100 to 100/],
  ])('refuses %j', async (more, problem) => {
    const { code, err } = await chandler('backfill', 'btc-bitcoin', '--start', '-3d', ...more);
    expect(code).toBe(2);
    expect(err).toMatch(problem);
  });
});

describe('backfills', () => {
  test('lists open backfills, the most urgent first', async () => {
    expect((await chandler('backfills', 'list')).out).toBe(
      'No open backfills; chandler backfills list --all shows finished ones.\n',
    );
    await detach();
    await detach('--priority', '7');
    const { code, out } = await chandler('backfills', 'list');
    expect(code).toBe(0);
    expect(out).toMatch(/^ *id +state +priority +series +span +coins +progress +spent +left +rows +done$/m);
    expect(out).toMatch(/^ *2 +queued +7 +24h usd +2026-10-05 … 2026-11-04 +3 +0% +0 +3 +0 +–$/m);
    const rows = JSON.parse((await chandler('backfills', 'list', '--json')).out);
    expect(rows.map(({ id }: { id: number }) => id)).toEqual([2, 1]);
    // Who wanted what: a user on this machine.
    const [{ requested_by }] = JSON.parse(
      (await chandler('sql', '--json', 'select requested_by from ops.backfill_progress where id = 2')).out,
    );
    expect(requested_by).toMatch(new RegExp(`^[^@]+@${hostname()}$`));
    expect(rows[0].requestedBy).toBe(requested_by);
    expect(rows[0]).toMatchObject({
      state: 'queued',
      plannedRequests: 3,
      leftRequests: 3,
      progress: 0,
      spent: 0,
      startedAt: null,
    });
  });

  test('shows no end that nobody updates: without a service, of a process that is gone, or when the end has passed', async () => {
    await detach();
    await detach();
    const { sql } = database;
    await sql`update ops.backfill set finish_at = ${clock.now() + 600_000}, finish_from = ${clock.now() + 500_000}, finish_to = ${clock.now() + 700_000}`;
    await sql`update ops.backfill set state = 'running', owner = 'host:1', started_at = ${clock.now()}, heartbeat_at = ${clock.now()} where id = 1`;
    const list = async () => {
      const rows = JSON.parse((await chandler('backfills', 'list', '--json')).out) as { finishAt: string | null }[];
      return rows.map(({ finishAt }) => finishAt !== null);
    };
    const beat = () =>
      keepInstance(sql, { owner: 'host:1', startedAt: NOON, heartbeatAt: clock.now(), roles: ['worker'] });
    await beat();
    expect(await list()).toEqual([true, true]);
    expect((await chandler('backfills', 'list')).out).toMatch(/^ *1 +running .* between .* and .*Z$/m);
    clock.advanceTo(clock.now() + 2 * 60_000);
    expect(await list()).toEqual([false, false]);
    const { out } = await chandler('backfills', 'list');
    expect(out).toMatch(/^ *1 +running .*–$/m);
    expect(out).toMatch(/^No service is running\. Start one with: chandler service$/m);
    // A service that cannot work because its key is refused does not update the forecast either.
    await beat();
    expect(await list()).toEqual([false, true]);
    clock.advanceTo(clock.now() + 20 * 60_000);
    await beat();
    expect(await list()).toEqual([false, false]);
    expect((await chandler('backfills', 'show', '1')).out).not.toMatch(/^ +done /m);
  });

  test('pauses, resumes, prioritises and cancels', async () => {
    await detach();
    const say = async (...argv: string[]) => {
      const { code, out, err } = await chandler('backfills', ...argv);
      expect({ code, err }).toEqual({ code: 0, err: '' });
      return out;
    };
    expect(await say('pause', '1')).toBe('Backfill 1 is paused.\n');
    expect(await say('resume', '1')).toBe('Backfill 1 is queued.\n');
    expect(await say('priority', '1', '-3')).toBe('Backfill 1 has priority -3.\n');
    expect(JSON.parse(await say('cancel', '1', '--json'))).toMatchObject({ id: 1, state: 'cancelled', priority: -3 });
    expect(await say('list', '--all')).toMatch(/^ *1 +cancelled /m);
  });

  test('says why something cannot be done', async () => {
    await detach();
    await chandler('backfills', 'cancel', '1');
    expect(await chandler('backfills', 'pause', '1')).toMatchObject({
      code: 1,
      err: 'error: backfill 1 is cancelled and cannot be paused\n',
    });
    expect(await chandler('backfills', 'pause', '99')).toMatchObject({
      code: 2,
      err: 'error: There is no backfill 99; chandler backfills list --all shows all.\n',
    });
    const { code, err } = await chandler('backfills', 'pause', 'x');
    expect(code).toBe(2);
    expect(err).toContain('whole number');
    const id = await startBackfill(database.sql, {
      requestedAt: NOON,
      startedAt: NOON,
      spec: {},
      span: { from: NOON - 1_000, to: NOON },
      interval: '24h',
      quote: 'usd',
      plannedRequests: 1,
      owner: 'host:7',
    });
    expect((await chandler('backfills', 'cancel', String(id))).err).toMatch(
      /belongs to a command \(host:7\), not to the service; stop it there/,
    );
  });
});
