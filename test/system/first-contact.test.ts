import { afterEach, describe, expect, test } from 'vitest';
import { DAY } from '../../src/core/interval.ts';
import { ConfigurationError } from '../../src/ingest/outcome.ts';
import { createScripted } from '../support/scripted.ts';
import { createWorld, type World } from '../support/world.ts';

const NOW = Date.UTC(2026, 10, 18, 12);
const TODAY = Math.floor(NOW / DAY) * DAY;
const WORK = { coins: ['btc-bitcoin', 'eth-ethereum'], from: TODAY - 900 * DAY, to: TODAY - 3 * DAY, concurrency: 2 };

let world: World;
let upstream: ReturnType<typeof createScripted>;
afterEach(() => world?.close());

async function make(speed = 1): Promise<void> {
  upstream = createScripted();
  world = await createWorld({ startAt: NOW, speed, fetch: upstream.fetch, simulator: { seed: 3 } });
}
const nobodyThere = (code: string) => () => {
  throw new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) });
};

describe('an upstream that has never answered', () => {
  test.each([
    ['ECONNREFUSED', /refused the connection.*; correct the address, or start the server that should answer there$/],
    ['ENOTFOUND', /the name upstream.test is not known.*; correct the host, or check this machine's network/],
    ['EAI_AGAIN', /name server does not answer\); check this machine's network/],
    ['ENETUNREACH', /no route to it\); check this machine's network/],
    ['ERR_SSL_WRONG_VERSION_NUMBER', /does not speak TLS.*; write http:\/\/ if that server has no TLS/],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', /certificate of upstream.test cannot be trusted.*NODE_EXTRA_CA_CERTS$/],
    ['HPE_INVALID_CONSTANT', /something that is not HTTP\); write https:\/\/ if that server wants TLS/],
  ])('that fails with %s gets one request, and one sentence names the address', async (code, sentence) => {
    await make();
    upstream.script = nobodyThere(code);
    const error = await world.open().catch((e: unknown) => e);
    expect(error).toBeInstanceOf(ConfigurationError);
    const { message } = error as ConfigurationError;
    expect(message).toMatch(/^the upstream cannot be reached at CHANDLER_BASE_URL http:\/\/upstream.test\/v1 \(/);
    expect(message).toMatch(sentence);
    expect(upstream.log).toHaveLength(1);
    expect(await world.database.sql`select from market.coin`).toHaveLength(0);
    const fetches = await world.database.sql`select status, outcome from ops.fetch`;
    expect(fetches).toHaveLength(1);
    expect(fetches[0]!.status).toBeNull();
  });

  test('ends a backfill with known coins after the requests in flight, and leaves nothing wanted', async () => {
    await make();
    await world.open();
    // As if the list of coins came from an upstream at another address.
    await world.database.sql`update ops.fetch set account_id = 'anonymous@other.test'`;
    upstream.forget();
    upstream.script = nobodyThere('ECONNREFUSED');
    const run = await (await world.open()).backfill(WORK);
    expect(run.end).toMatchObject({
      kind: 'configurationError',
      message: expect.stringContaining('CHANDLER_BASE_URL'),
    });
    expect(upstream.log.length).toBeLessThanOrEqual(WORK.concurrency);
    expect(await world.database.sql`select from market.candle`).toHaveLength(0);
  });

  test('does not delay a user who corrects the address, however often it was tried', async () => {
    await make();
    upstream.script = nobodyThere('ECONNREFUSED');
    for (let i = 0; i < 6; i++) await expect(world.open()).rejects.toThrow(ConfigurationError);
    upstream.script = null;
    const { session } = await world.open();
    expect((await session.quota.state()).hold).toBeNull();
    expect(upstream.log).toHaveLength(6 + 2);
  });
});

test('a run waits for an upstream that has answered before, even to another process', async () => {
  await make();
  await world.open();
  upstream.forget();
  let left = 3;
  upstream.script = () => (left-- > 0 ? nobodyThere('ECONNREFUSED')() : null);
  const run = await (await world.open()).backfill(WORK);
  expect(run.end).toEqual({ kind: 'done' });
  expect(upstream.log).toHaveLength(3 + run.planned);
});

test.each(['ERR_SSL_WRONG_VERSION_NUMBER', 'HPE_INVALID_CONSTANT'])(
  'a run does not wait for an upstream that answered over another protocol: %s',
  async (code) => {
    await make();
    await world.open();
    await world.database.sql`delete from market.coin`;
    upstream.forget();
    upstream.script = nobodyThere(code);
    await expect(world.open()).rejects.toThrow(ConfigurationError);
    expect(upstream.log).toHaveLength(1);
  },
);

test('a run requests again when a server accepts the connection and then drops it', async () => {
  await make(50);
  let left = 2;
  upstream.script = () => (left-- > 0 ? nobodyThere('ECONNRESET')() : null);
  await world.open();
  expect(upstream.log).toHaveLength(2 + 2);
});
