import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Clock, Instant } from '../../src/clock.ts';
import type { Answer } from '../../src/upstream/answer.ts';
import { createUpstream } from '../../src/upstream/client.ts';

const NOW = Date.parse('2024-03-10T12:00:00Z');

/** A clock that stands still, except that a sleep moves it. */
function standingClock(start: Instant = NOW): Clock {
  let now = start;
  return {
    now: () => now,
    sleep: async (ms, signal) => {
      // Answers that arrive at once come first.
      await new Promise((resolve) => setImmediate(resolve));
      signal?.throwIfAborted();
      now += ms;
    },
  };
}

/** What the client makes of `status`, `headers` and `body`. Also checks that it sent one request. */
async function meaning(
  status: number,
  body: string | object | null,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const type = typeof body === 'string' && body.startsWith('<') ? 'text/html' : 'application/json';
  const text = body === null || typeof body === 'string' ? body : JSON.stringify(body);
  let requests = 0;
  const upstream = createUpstream({
    baseUrl: 'https://api.example/v1',
    key: 'k',
    clock: standingClock(),
    fetch: async (request) => {
      requests++;
      expect(request.redirect).toBe('manual');
      return new Response(text, { status, headers: { 'content-type': type, ...headers } });
    },
  });
  const answer = await upstream.send({ path: '/coins' });
  expect(requests).toBe(1);
  return answer;
}

const limit = (at: string) =>
  `Getting historical OHLCV data before ${at} is not allowed in this plan. Check plans on coinpaprika.com/api`;

describe('the meaning of a status', () => {
  const table: [string, number, string | object | null, object][] = [
    ['an answer', 200, [{ id: 'x' }], { kind: 'answered', body: [{ id: 'x' }] }],
    ['an answer, though empty', 200, [], { kind: 'answered', body: [] }],
    ['an answer, with a byte-order mark', 200, '\uFEFF{"a":1}', { kind: 'answered', body: { a: 1 } }],
    ['malformed: a web page', 200, '<!doctype html><p>hello', { kind: 'malformed', astray: true }],
    ['malformed: broken JSON', 200, '[{"open":1},{"op', { kind: 'malformed', astray: false }],
    ['malformed: nothing', 200, '', { kind: 'malformed', astray: false }],
    ['malformed: a bare value', 200, '42', { kind: 'malformed', astray: false }],
    ['malformed: null', 200, 'null', { kind: 'malformed', astray: false }],
    ['malformed: an error that says 200', 200, { error: 'oops' }, { kind: 'malformed', message: /oops/ }],
    ['malformed: no content', 204, null, { kind: 'malformed' }],
    ['malformed: part of it', 206, [], { kind: 'malformed' }],
    ['malformed: not modified, which was not asked', 304, null, { kind: 'malformed' }],
    [
      'a history limit, with its date to the nanosecond above',
      402,
      { error: limit('2022-06-19 09:50:50.13558332 +0000 UTC') },
      { kind: 'refused', reason: 'history limit', notBefore: Date.parse('2022-06-19T09:50:50.136Z') },
    ],
    [
      'a history limit, at another offset',
      400,
      { error: limit('2022-06-19 11:50:50 +0200 CEST') },
      { kind: 'refused', reason: 'history limit', notBefore: Date.parse('2022-06-19T09:50:50Z') },
    ],
    [
      'a history limit without a date',
      402,
      { error: 'Getting minute historical data is not allowed in this plan' },
      { kind: 'refused', reason: 'history limit', notBefore: null },
    ],
    ['spent', 402, { error: 'you have reached maximum request limit' }, { kind: 'limited', by: 'quota' }],
    ['spent, without a text', 402, '', { kind: 'limited', by: 'quota' }],
    ['too fast', 429, { error: 'slow down' }, { kind: 'limited', by: 'rate', retryAfterMs: null }],
    ['a key that is not taken', 403, '<html>blocked', { kind: 'refused', reason: 'forbidden' }],
    ['a key that is missing', 401, '', { kind: 'refused', reason: 'forbidden' }],
    ['an unknown id', 404, { error: 'id not found' }, { kind: 'refused', reason: 'unknown id' }],
    ['an unknown route', 404, '404 page not found', { kind: 'refused', reason: 'unknown route' }],
    ['a gateway without a route', 404, { message: 'no Route matched' }, { kind: 'refused', reason: 'unknown route' }],
    ['a bad request', 400, { error: 'invalid parameters' }, { kind: 'refused', reason: 'bad request' }],
    ['a bad request, oddly', 418, '', { kind: 'refused', reason: 'bad request' }],
    ['down', 500, { error: 'x' }, { kind: 'unavailable' }],
    ['down, with a web page', 502, '<html><h1>Bad gateway', { kind: 'unavailable', message: /502: a web page$/ }],
    ['down, at the edge', 522, '', { kind: 'unavailable' }],
    ['down for a moment', 408, '', { kind: 'unavailable' }],
    ['down, too early', 425, '', { kind: 'unavailable' }],
  ];
  for (const [what, status, body, expected] of table) {
    it(`${status} ${what}`, async () => {
      const { message, ...rest } = expected as { message?: RegExp };
      const answer = await meaning(status, body);
      expect(answer).toMatchObject(rest);
      if (message) expect('message' in answer && answer.message).toMatch(message);
      expect(answer.exchange.status).toBe(status);
    });
  }
});

describe('the waiting time before a retry', () => {
  const waits: [Record<string, string>, number | null][] = [
    [{ 'retry-after': '7' }, 7000],
    [{ 'retry-after': '0' }, 0],
    [{ 'retry-after': 'Sun, 10 Mar 2024 12:00:30 GMT' }, 30_000],
    // Our clock is an hour off: the Date of the answer counts.
    [{ 'retry-after': 'Sun, 10 Mar 2024 13:00:30 GMT', date: 'Sun, 10 Mar 2024 13:00:00 GMT' }, 30_000],
    [{ 'retry-after': 'Sun, 10 Mar 2019 12:00:00 GMT' }, 0],
    [{ 'retry-after': '999999999999' }, 24 * 3_600_000],
    [{ 'retry-after': 'soon' }, null],
    [{ 'retry-after': '-5' }, null],
    [{ 'ratelimit-reset': '12' }, 12_000],
    [{ 'ratelimit-reset': '12', 'retry-after': '3' }, 3000],
    [{ 'ratelimit-reset': String(NOW / 1000 + 20) }, 20_000],
    // The reset of the month, with requests left in the month: it does not explain this 429.
    [{ 'ratelimit-reset': '1800000', 'ratelimit-limit': '20000', 'ratelimit-remaining': '12345' }, null],
    [{ 'ratelimit-reset': '1800000', 'ratelimit-limit': '20000' }, null],
    [{ 'ratelimit-reset': '1800000', 'ratelimit-remaining': '0' }, 24 * 3_600_000],
    [{}, null],
  ];
  for (const [headers, expected] of waits) {
    it(`${JSON.stringify(headers)} is ${expected} ms`, async () => {
      for (const status of [429, 503]) {
        expect(await meaning(status, '', headers)).toMatchObject({ retryAfterMs: expected });
      }
    });
  }
});

describe('the age of an answer', () => {
  it('is as of our clock without headers, as of the earlier of both with a Date, minus the Age', async () => {
    const asOf = async (headers: Record<string, string>) => (await meaning(200, [], headers)).exchange;
    const date = (ms: number) => ({ date: new Date(NOW + ms).toUTCString() });
    expect(await asOf({})).toMatchObject({ asOf: NOW, date: null, latest: NOW });
    expect(await asOf(date(-5000))).toMatchObject({ asOf: NOW - 5000, latest: NOW });
    expect(await asOf(date(5000))).toMatchObject({ asOf: NOW, latest: NOW + 5000 });
    const cached = { asOf: NOW - 60_000, date: NOW - 55_000, latest: NOW + 5000 };
    expect(await asOf({ ...date(5000), age: '60' })).toMatchObject(cached);
    expect(await asOf({ age: 'old', date: 'yesterday' })).toMatchObject({ asOf: NOW, latest: NOW });
    expect(await asOf({ age: '-60' })).toMatchObject({ asOf: NOW });
  });
});

it('a fetch that never answers is aborted at the timeout and counts as unavailable', async () => {
  let stopped = false;
  const clock = standingClock();
  const upstream = createUpstream({
    baseUrl: 'https://api.example/v1',
    key: null,
    clock,
    timeouts: { connectMs: 1000, headersMs: 30_000, bodyMs: 60_000 },
    fetch: (request) => {
      request.signal.addEventListener('abort', () => {
        stopped = true;
      });
      return new Promise(() => undefined);
    },
  });
  const answer = await upstream.send({ path: '/x' });
  expect(answer).toMatchObject({ kind: 'unavailable', message: expect.stringMatching(/did not answer in time/) });
  expect(answer.exchange.durationMs).toBe(31_000);
  expect(stopped).toBe(true);
});

it('a fetch that throws counts as unavailable', async () => {
  const upstream = createUpstream({
    baseUrl: 'https://api.example/v1',
    key: null,
    clock: standingClock(),
    fetch: () => Promise.reject(new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } })),
  });
  expect(await upstream.send({ path: '/x' })).toMatchObject({ message: expect.stringMatching(/api\.example refused/) });
});

it('no answer makes the client throw, and no message has more than one line', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 200, max: 599 }),
      fc.oneof(fc.string({ unit: 'binary' }), fc.json(), fc.constant('<html>')),
      fc.dictionary(
        fc.constantFrom(
          'location',
          'retry-after',
          'ratelimit-reset',
          'date',
          'age',
          'content-encoding',
          'content-type',
        ),
        fc.stringMatching(/^[\x20-\x7e]{0,30}$/),
      ),
      async (status, body, headers) => {
        const answer = await meaning(status, [204, 205, 304].includes(status) ? null : body, headers);
        if ('message' in answer) {
          expect(answer.message.length).toBeLessThan(500);
          expect(answer.message).not.toMatch(/[\n\r\0]/);
        }
      },
    ),
    { numRuns: 500 },
  );
});

it('the caller may abort although `fetch` ignores the signal, and nothing keeps waiting', async () => {
  let waiting = 0;
  const clock: Clock = {
    now: () => NOW,
    sleep: (_ms, signal) => {
      waiting++;
      return new Promise((_, reject) => {
        signal?.addEventListener('abort', () => {
          waiting--;
          reject(signal.reason);
        });
      });
    },
  };
  const upstream = createUpstream({
    baseUrl: 'https://api.example/v1',
    key: null,
    clock,
    fetch: () => new Promise(() => undefined),
  });
  const stop = new AbortController();
  const asked = upstream.send({ path: '/coins', signal: stop.signal });
  expect(waiting).toBe(1);
  stop.abort(new Error('enough'));
  await expect(asked).rejects.toThrow('enough');
  expect(waiting).toBe(0);
});
