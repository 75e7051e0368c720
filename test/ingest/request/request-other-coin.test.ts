/** A request about another coin: against a scripted upstream, the real client, the real ledger and a real database. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createAuthSchemeChoice } from '../../../src/ingest/request/auth-scheme.ts';
import { createReachability } from '../../../src/ingest/request/reachability.ts';
import { createRequestOtherCoin, type RequestOtherCoin } from '../../../src/ingest/request/request-other-coin.ts';
import { createSendRequest } from '../../../src/ingest/request/send-request.ts';
import { recordCoins } from '../../../src/store/snapshot/coin.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { says } from '../../support/scripted.ts';
import {
  BASE_URL,
  createScriptedQuota,
  createScriptedUpstream,
  NO_LIMITS,
  UPSTREAM_NOW,
} from '../../support/scripted-upstream.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
beforeEach(() => database.sql`truncate ops.fetch, ops.quota, ops.quota_spent, market.coin cascade`);

const ACCOUNT = 'anonymous@upstream.test';
const ABOUT: Parameters<RequestOtherCoin>[0] = {
  coinId: 'b',
  interval: '24h',
  since: UPSTREAM_NOW - 30_000,
  spender: { class: 'backfill', name: 'backfill 7' },
  backfillId: 7,
};
/** Coins with their ranks. */
const COINS = { a: 1, b: 2, c: 3, d: 4, e: 5 };

async function open({
  coins = COINS,
  limits = NO_LIMITS,
}: {
  coins?: Partial<typeof COINS>;
  limits?: typeof NO_LIMITS;
} = {}) {
  const { sql } = database;
  const upstream = createScriptedUpstream();
  const { clock } = upstream;
  const quota = createScriptedQuota(database, { clock, accountId: ACCOUNT, limits });
  const listed = Object.entries(coins).map(([id, rank]) => ({
    id,
    rank,
    name: id,
    symbol: id,
    type: 'coin',
    is_new: false,
    is_active: true,
  }));
  await recordCoins(sql, listed, UPSTREAM_NOW);
  const sendRequest = createSendRequest({
    upstream: upstream.client,
    baseUrl: BASE_URL,
    reachability: createReachability(sql, new URL(BASE_URL).host),
    quota,
    authScheme: createAuthSchemeChoice({
      hasKey: false,
      configured: 'auto',
      known: null,
      remember: async () => undefined,
    }),
    sql,
    clock,
    accountId: ACCOUNT,
    judgeForbidden: async () => undefined,
    judgeQuotaExhausted: async () => 'budget left',
  });
  const requestOtherCoin = createRequestOtherCoin({ sql, sendRequest, clock });
  const spent = async () => (await quota.state()).day.spent;
  return {
    ...upstream,
    ask: (options = {}, about: Partial<typeof ABOUT> = {}) => requestOtherCoin({ ...ABOUT, ...about }, options),
    spent,
  };
}

const recorded = () =>
  database.sql`select endpoint, subject, backfill_id, outcome, rows from ops.fetch order by id`.then((rows) => [
    ...rows,
  ]);

test('requests the largest other coins in turn, one candle each, paid from the quota of the work and recorded for it', async () => {
  const { ask, answers, sent, spent } = await open();
  answers(Response.json([{ time_open: '2026-11-20T00:00:00Z', close: 1 }]));
  for (let i = 0; i < 4; i++) expect(await ask()).toEqual({ kind: 'answered', requests: 1 });
  expect(sent.map(({ path }) => path)).toEqual(
    ['a', 'c', 'd', 'a'].map((id) => `/v1/coins/${id}/ohlcv/latest?quote=usd`),
  );
  expect(await spent()).toBe(4);
  const [row] = await recorded();
  expect(row).toEqual({ endpoint: 'ohlcv', subject: 'a', backfillId: 7, outcome: 'stored', rows: 1 });
});

test.each([
  ['no candle', () => Response.json([]), 'answered', 'stored'],
  ['an unknown id', () => says(404, 'id not found'), 'answered', 'unknown id'],
  ['a 402 because of the plan', () => says(402, 'not in this plan'), 'answered', 'limited'],
  ['a 5xx', () => says(500, 'broken'), 'unanswered', 'unavailable'],
  [
    'no JSON',
    () => new Response('oops', { headers: { 'content-type': 'application/json' } }),
    'unanswered',
    'malformed',
  ],
  ['no candles but something else', () => Response.json({ status: 'maintenance' }), 'unanswered', 'malformed'],
  [
    'an unknown route',
    () => Response.json({ message: 'no Route matched' }, { status: 404 }),
    'unanswered',
    'unknown route',
  ],
])('%s', async (_, reply, kind, outcome) => {
  const { ask, answers } = await open();
  answers(reply());
  expect(await ask()).toEqual({ kind, requests: 1 });
  expect(await recorded()).toMatchObject([{ endpoint: 'ohlcv', subject: 'a', outcome }]);
});

test('a cached answer from before the failure proves nothing', async () => {
  const { ask, answers } = await open();
  answers(Response.json([], { headers: { age: '300' } }));
  expect(await ask()).toEqual({ kind: 'unanswered', requests: 1 });
  answers(Response.json([], { headers: { age: '10' } }));
  expect(await ask()).toEqual({ kind: 'answered', requests: 1 });
});

test('where prices fail, prices are requested: candles may be answered all the while', async () => {
  const { ask, answers, sent } = await open();
  answers(Response.json([{ timestamp: '2026-11-20T00:00:00Z', price: 1 }]));
  expect(await ask({}, { interval: 'prices-1h' })).toEqual({ kind: 'answered', requests: 1 });
  expect(sent.map(({ path }) => path)).toEqual([
    '/v1/tickers/a/historical?start=2026-11-20T00%3A00%3A00Z&end=2026-11-21T00%3A00%3A00Z&interval=1d&limit=5000&quote=usd',
  ]);
  expect(await recorded()).toMatchObject([{ endpoint: 'prices', subject: 'a', outcome: 'stored', rows: 1 }]);
});

test('a 429 decides nothing: the ledger holds the next request', async () => {
  const { ask, answers } = await open();
  answers(says(429, 'slow down', { 'retry-after': '60' }));
  expect(await ask()).toMatchObject({ kind: 'held', reason: 'limited' });
  expect(await ask()).toMatchObject({ kind: 'held', reason: 'limited' });
  expect(await recorded()).toHaveLength(1);
});

test('takes its request from the quota first: without one nothing is sent', async () => {
  const { ask, sent } = await open({ limits: { ...NO_LIMITS, perDay: 0 } });
  expect(await ask()).toMatchObject({ kind: 'held', reason: 'day' });
  expect(sent).toEqual([]);
});

test('without another coin no request is sent', async () => {
  const { ask, sent } = await open({ coins: { b: 2 } });
  expect(await ask()).toEqual({ kind: 'no other' });
  expect(sent).toEqual([]);
});

test('a run that ends sends no request, and its chunk returns to the queue', async () => {
  const { ask, sent } = await open();
  const stop = new AbortController();
  stop.abort();
  expect(await ask({ signal: stop.signal })).toMatchObject({ kind: 'held', reason: 'interrupted' });
  expect(sent).toEqual([]);
});
