import { expect, it, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { readRedirect } from '../../src/upstream/address.ts';
import { createUpstream } from '../../src/upstream/client.ts';

const ASKED = new URL('https://api.example/v1/coins?limit=2');

test.each([
  ['another path, with a query', '/v1/all?limit=2&after=a%2Fb%26c', '/v1/all?limit=2&after=a%2Fb%26c'],
  ['another path, without one', '/v1/all', '/v1/all'],
  ['the same path, with another query', '?limit=3', '/v1/coins?limit=3'],
  ['the same path, without the query', '/v1/coins', '/v1/coins'],
  ['a neighbour', 'tickers?quotes=USD', '/v1/tickers?quotes=USD'],
  ['an absolute address, with a fragment', 'https://api.example/v2/coins?a=1#top', '/v2/coins?a=1'],
])('a redirect to %s of the origin keeps exactly that query', (_, location, path) => {
  expect(readRedirect(302, location, ASKED)).toEqual({ kind: 'moved', path, shown: path.replace(/\?.*/, '') });
});

test('a redirect to the same path and query is rejected', () => {
  expect(readRedirect(302, '/v1/coins?limit=2', ASKED)).toMatchObject({
    kind: 'malformed',
    astray: true,
    message: 'api.example redirects /v1/coins to itself',
  });
});

it('a redirected request uses the new path and query, and adds nothing', async () => {
  const urls: string[] = [];
  const upstream = createUpstream({
    baseUrl: 'https://api.example/v1',
    key: null,
    clock: systemClock,
    fetch: async (request) => {
      urls.push(request.url);
      const location = '/elsewhere/coins?limit=2&token=a%2Fb%26c';
      return urls.length === 1 ? new Response(null, { status: 308, headers: { location } }) : Response.json([]);
    },
  });
  const first = await upstream.send({ path: '/coins', query: { limit: '2' } });
  if (first.kind !== 'moved') throw new Error(`expected a redirect, got ${first.kind}`);
  expect(urls).toEqual(['https://api.example/v1/coins?limit=2']);
  expect(await upstream.send({ path: first.path, absolute: true })).toMatchObject({ kind: 'answered' });
  expect(urls[1]).toBe('https://api.example/elsewhere/coins?limit=2&token=a%2Fb%26c');
});
