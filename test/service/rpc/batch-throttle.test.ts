/** A batch of tool calls waits for the rate limit of its caller. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { makeApiKey } from '../../../src/core/caller/api-key.ts';
import { createMeteredAccess, type MeteredAccess } from '../../../src/service/access/metered-access.ts';
import { type Listening, listen } from '../../../src/service/http/listen.ts';
import { MAX_BATCH } from '../../../src/service/rpc/rpc-messages.ts';
import { createService } from '../../../src/service/service.ts';
import { createMadeUpMarket } from '../../../src/simulator/made-up/made-up.ts';
import { createMadeUpWorld } from '../../../src/simulator/made-up/made-up-world.ts';
import { createApiKey } from '../../../src/store/callers/api-key.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { sender } from '../../support/rpc-service.ts';
import { createVirtualClock, type VirtualClock } from '../../support/virtual-clock.ts';

const NOON = Date.UTC(2026, 10, 3, 12);
const world = createMadeUpWorld({ seed: 1, coins: 2 });
const onError = (error: unknown) => {
  throw error;
};

let database: TestDatabase;
let clock: VirtualClock;
let access: MeteredAccess;
let post: ReturnType<typeof sender>;
let server: Listening;
beforeEach(async () => {
  database = await createTestDatabase();
  clock = createVirtualClock(NOON);
  access = createMeteredAccess({ sql: database.sql, clock, limits: true, onError });
  const service = createService({ data: createMadeUpMarket({ world, clock }), access, clock, onError });
  post = sender(service);
  server = await listen(service, { host: '127.0.0.1', port: 0, onError });
});
afterEach(async () => {
  await server.close();
  await access.close();
  await database.drop();
});

async function keyWith(requestsPerSecond: number | null) {
  const made = makeApiKey();
  const terms = {
    name: null,
    plan: 'starter',
    requestsPerMonth: null,
    requestsPerSecond,
    expiresAt: null,
    isOperator: false,
  };
  const { id } = await createApiKey(database.sql, terms, { ...made, now: NOON });
  return { headers: { Authorization: `Bearer ${made.key}` }, subject: `key:${id}` };
}
const spent = async (subject: string) =>
  (await database.sql<{ n: number }[]>`select month_spent::int as n from ops.api_usage where subject = ${subject}`)[0]
    ?.n;

const call = (id: number) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'getGlobal', arguments: {} },
});
const list = { jsonrpc: '2.0', id: 'list', method: 'tools/list' };
const batchOf = (n: number) => Array.from({ length: n }, (_, id) => call(id));

/** Moves the clock while a caller waits for a token. Resolves to the answer and how long it took. */
async function timed<T>(asking: Promise<T>): Promise<{ answer: T; tookMs: number }> {
  const begun = clock.now();
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  asking.then(over, over);
  while (!isOver) {
    await new Promise((resolve) => setImmediate(resolve));
    const ms = clock.firstWakes(2_001);
    if (ms !== null) clock.advance(ms);
  }
  return { answer: await asking, tookMs: clock.now() - begun };
}

type Answer = { readonly result?: { readonly isError?: boolean }; readonly error?: { readonly message: string } };
const isGood = ({ result }: Answer) => result !== undefined && result.isError !== true;

test.each([
  ['that is no JSON', '{oops'],
  ['that is no request', { jsonrpc: '1.0', id: 1, method: 'ping' }],
])('a body %s is refused with 429 beyond the pace, and with 403 if the key is unknown', async (_, body) => {
  const { headers } = await keyWith(null);
  const statuses: number[] = [];
  for (let i = 0; i < 12; i++) statuses.push((await post(body, headers)).status);
  expect(statuses).toEqual([...Array(10).fill(400), 429, 429]);
  expect((await post(body, headers)).headers.get('Retry-After')).toBe('1');
  expect((await post(body, { Authorization: makeApiKey().key })).status).toBe(403);
});

describe('a batch', () => {
  test.each([
    ['JSON-RPC', {}],
    ['MCP', { Accept: 'application/json, text/event-stream' }],
  ])('of the largest size is answered in full, no faster than the rate limit (%s)', async (_, accept) => {
    const { headers, subject } = await keyWith(null);
    const first = await timed(post(batchOf(MAX_BATCH), { ...headers, ...accept }));
    expect(first.answer.json.filter(isGood)).toHaveLength(MAX_BATCH);
    expect(first.tookMs).toBe(1_000);
    // Right after it the bucket is empty, and the next batch also lists the tools.
    const second = await timed(post([list, ...batchOf(MAX_BATCH - 1)], { ...headers, ...accept }));
    expect(second.answer.json.filter(isGood)).toHaveLength(MAX_BATCH);
    expect(second.tookMs).toBe(2_000);
    await access.close();
    expect(await spent(subject)).toBe(2 * MAX_BATCH - 1);
  });

  test('is throttled for at most two seconds; the remaining calls are refused with a waiting time', async () => {
    const { headers } = await keyWith(2);
    const { answer, tookMs } = await timed(post(batchOf(MAX_BATCH), headers));
    expect(tookMs).toBe(2_000);
    expect(answer.json.map(isGood)).toEqual(batchOf(MAX_BATCH).map((_, i) => i < 6));
    expect(answer.json[6].error).toEqual({
      code: -32000,
      message: '429: you have reached maximum request limit',
      data: { status: 429, retryAfterSeconds: 1 },
    });
  });

  test('does not wait when the month is exhausted or the key unknown', async () => {
    const { headers, subject } = await keyWith(null);
    await database.sql`
      insert into ops.api_usage (subject, month_start, month_spent, day_start, day_spent, updated_at)
      select ${subject}, t, 400000, t, 0, t from (select ${Date.UTC(2026, 10)}::timestamptz as t) x`;
    const { answer } = await timed(post(batchOf(2), headers));
    expect(answer.json.map(({ error }: Answer) => error?.message.slice(0, 3))).toEqual(['402', '402']);
    const guess = await timed(post(batchOf(MAX_BATCH), { Authorization: makeApiKey().key }));
    expect([answer, guess.answer].flatMap(({ json }) => json.filter(isGood))).toEqual([]);
    expect(guess.tookMs).toBe(0);
  });

  test('waits, while a single call is refused at once, as REST is', async () => {
    const { headers } = await keyWith(null);
    await timed(post(batchOf(MAX_BATCH), headers));
    const { answer, tookMs } = await timed(post(call(1), headers));
    expect([answer.json.error.data, tookMs]).toEqual([{ status: 429, retryAfterSeconds: 1 }, 0]);
  });

  test('of a caller that has disconnected is dropped, and costs no further request', async () => {
    const { headers, subject } = await keyWith(null);
    const body = JSON.stringify(batchOf(MAX_BATCH));
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    await once(socket, 'connect');
    socket.write(
      `POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n` +
        `Authorization: ${headers.Authorization}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await vi.waitFor(() => expect(clock.firstWakes(2_001)).not.toBeNull(), { timeout: 60_000 });
    socket.destroy();
    await vi.waitFor(() => expect(clock.firstWakes(2_001)).toBeNull(), { timeout: 60_000 });
    clock.advance(2_000);
    await access.close();
    expect(await spent(subject)).toBe(10);
  });
});
