import { once } from 'node:events';
import net from 'node:net';
import tls from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { isRedisUnavailable, openRedis, QueueUnavailable } from '../../../src/ingest/queue/redis.ts';
import { StoreError } from '../../../src/store/connection/store-error.ts';
import { testRedisUrl } from '../../support/database.ts';
import { SELF_SIGNED } from '../../support/self-signed.ts';

const servers: net.Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function listen(server: net.Server): Promise<number> {
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as net.AddressInfo).port;
}

async function failure(url: string): Promise<string> {
  const error = await openRedis(url).then(
    (connection) => connection.disconnect(),
    (e: unknown) => e,
  );
  expect(error).toBeInstanceOf(StoreError);
  const { message } = error as StoreError;
  expect(message).not.toMatch(/hunter2|\n/);
  expect(message).toMatch(/, or leave REDIS_URL out to keep the queue in Postgres$/);
  return message;
}

test.each([
  ['OOM command not allowed when used memory > maxmemory.', /its memory is full/],
  [
    'ERR Error running script (call to f_1): @user_script:12: @user_script: 12: -OOM command not allowed when used memory > maxmemory.',
    /its memory is full/,
  ],
  ['MISCONF Redis is configured to save RDB snapshots', /cannot save to its disk/],
  ["READONLY You can't write against a read only replica.", /is a replica/],
])('a Redis that stores nothing counts as temporarily away: %s', (text, said) => {
  expect(isRedisUnavailable(new Error(text))).toBe(true);
  expect(new QueueUnavailable(new Error(text), 'redis://127.0.0.1:6379').message).toMatch(said);
  expect(isRedisUnavailable(new Error(`ERR ${text.slice(0, 4)}`))).toBe(false);
});

describe('a Redis that cannot be used is reported in one sentence', () => {
  test('nothing listens there', async () => {
    expect(await failure('redis://:hunter2@127.0.0.1:1')).toMatch(
      /^no Redis answers at 127.0.0.1:1 \(connection refused\); start it, correct REDIS_URL/,
    );
  });

  test('another program listens there', async () => {
    const port = await listen(net.createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')));
    expect(await failure(`redis://127.0.0.1:${port}`)).toMatch(/^what answers at 127.0.0.1:\d+ is not Redis/);
  });

  test('it hangs up', async () => {
    const port = await listen(net.createServer((socket) => socket.destroy()));
    expect(await failure(`redis://127.0.0.1:${port}`)).toMatch(
      /closes the connection; .*write rediss:\/\/ if it wants TLS/,
    );
  });

  test('its certificate is not trusted', async () => {
    const port = await listen(tls.createServer(SELF_SIGNED));
    expect(await failure(`rediss://127.0.0.1:${port}`)).toMatch(
      /certificate .* cannot be trusted .*NODE_EXTRA_CA_CERTS/,
    );
  });

  test('it does not use TLS', async () => {
    const port = await listen(net.createServer((socket) => socket.end('-ERR unknown command\r\n')));
    expect(await failure(`rediss://127.0.0.1:${port}`)).toMatch(/does not speak TLS, .*; write redis:\/\//);
  });

  const redisUrl = testRedisUrl();
  test.skipIf(redisUrl === null)('it does not have that database, or know that user', async () => {
    const url = new URL(redisUrl!);
    url.pathname = '/4711';
    expect(await failure(url.href)).toMatch(/^Redis at .* has no database 4711; correct the number/);
    url.pathname = '';
    url.username = 'bob';
    url.password = 'hunter2';
    expect(await failure(url.href)).toMatch(/refuses the password of user 'bob'; correct it in REDIS_URL/);
  });
});
