import { describe, expect, test } from 'vitest';
import { createFailureLog, createLog, maskPasswords } from '../src/log.ts';
import { createVirtualClock } from './support/virtual-clock.ts';

function capture(options: { readable?: boolean; secrets?: string[]; level?: 'info' | 'debug' } = {}) {
  const lines: string[] = [];
  const log = createLog({ level: options.level ?? 'info', write: (line) => lines.push(line), ...options });
  return { log, lines };
}

describe('createLog', () => {
  test('writes one JSON object a line, with the level as a word and the time in UTC', () => {
    const { log, lines } = capture();
    log.info({ chunk: 7 }, 'stored');
    expect(lines).toHaveLength(1);
    expect(lines[0]!.endsWith('\n')).toBe(true);
    expect(JSON.parse(lines[0]!)).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      chunk: 7,
      msg: 'stored',
    });
  });

  test('leaves out lines below the level', () => {
    const { log, lines } = capture();
    log.debug('quiet');
    expect(lines).toEqual([]);
  });

  test.each([false, true])('never writes a secret, wherever it occurs (readable: %s)', (readable) => {
    const { log, lines } = capture({ readable, secrets: ['s3cret-key'] });
    log.info({ apiKey: 'other', header: 'Bearer s3cret-key' }, 'sent s3cret-key');
    log.error(new Error('postgres://chandler:hunter2@db:5432/x refused s3cret-key'));
    const text = lines.join('');
    expect(text).not.toMatch(/s3cret-key|hunter2|other/);
    expect(text).toContain('postgres://chandler:***@db:5432/x');
  });

  test.each([false, true])('leaves numbers as they are, also if they contain a secret (readable: %s)', (readable) => {
    const { log, lines } = capture({ readable, secrets: ['1234'] });
    log.info({ bytes: 51234567 }, 'wrote 1234');
    expect(lines[0]).toContain(readable ? 'wrote *** bytes=51234567' : '"bytes":51234567,"msg":"wrote ***"');
  });

  test.each([false, true])('keeps what follows a password in quotes, and the next line (readable: %s)', (readable) => {
    const { log, lines } = capture({ readable });
    log.warn('"postgres://h/db?password=hunter2" failed\nwith password=hunter2\nagain');
    const text = readable ? lines[0]! : JSON.parse(lines[0]!).msg;
    expect(text).toContain('"postgres://h/db?password=***" failed\nwith password=***\nagain');
  });

  test('writes the time, the level, the message and the fields on one line of a terminal', () => {
    const { log, lines } = capture({ readable: true });
    log.warn({ coin: 'btc-bitcoin', tries: 2 }, 'waiting');
    expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d warn {2}waiting coin=btc-bitcoin tries=2\n$/);
  });
});

describe('maskPasswords', () => {
  test.each([
    ['postgres://u:p@ss:word@host/db', 'postgres://u:***@host/db'],
    ['redis://:secret@host:6379', 'redis://:***@host:6379'],
    ['postgres://host/db?user=u&password=secret&x=1', 'postgres://host/db?user=u&password=***&x=1'],
    ['postgres://host/db', 'postgres://host/db'],
    ['see https://example.org/a: b@c', 'see https://example.org/a: b@c'],
  ])('turns %s into %s', (given, masked) => {
    expect(maskPasswords(given)).toBe(masked);
  });
});

describe('failures that an outage multiplies', () => {
  const failing = () => {
    const { log, lines } = capture();
    const clock = createVirtualClock(Date.UTC(2030, 4, 15, 10));
    const stop = new AbortController();
    const failed = createFailureLog(log, clock, stop.signal);
    const fail = (name: string, cause = '503') =>
      failed({ level: 'warn', message: 'chunk failed', cause, name, fields: { coin: name }, error: new Error(cause) });
    const told = () => lines.splice(0).map((line) => JSON.parse(line));
    const pass = async (ms: number) => {
      clock.advance(ms);
      await new Promise((resolve) => setImmediate(resolve));
    };
    return { fail, told, pass, stop };
  };

  test('are written at once, then once a minute with their count, for each cause, without a stack', async () => {
    const { fail, told, pass } = failing();
    for (const coin of ['a', 'b', 'c']) fail(coin);
    fail('d', '502');
    const first = told();
    expect(first).toMatchObject([
      { msg: 'chunk failed', cause: '503', coin: 'a' },
      { msg: 'chunk failed', cause: '502', coin: 'd' },
    ]);
    expect(JSON.stringify(first)).not.toContain('stack');
    await pass(59_000);
    expect(told()).toEqual([]);
    await pass(1_000);
    expect(told()).toMatchObject([
      { msg: 'chunk failed', cause: '503', count: 2, since: '2030-05-15T10:00:00.000Z', names: ['b', 'c'] },
    ]);
    fail('e');
    await pass(60_000);
    expect(told()).toMatchObject([{ count: 1, names: ['e'] }]);
    // After a minute without a failure, the next one is written at once again.
    await pass(60_000);
    fail('f');
    expect(told()).toMatchObject([{ coin: 'f' }]);
  });

  test('share a cause even if the upstream puts a time or a request id into its message', async () => {
    const { fail, told, pass } = failing();
    fail('a', 'HTTP 503: busy (request 7f3c2a9e-11 at 10:00:01)');
    fail('b', 'HTTP 503: busy (request 0b9d-4e21 at 10:00:02)');
    fail('c', 'HTTP 502: bad gateway (request 7f3c2a9e-11 at 10:00:02)');
    expect(told()).toMatchObject([{ coin: 'a' }, { coin: 'c' }]);
    await pass(60_000);
    expect(told()).toMatchObject([{ count: 1, names: ['b'] }]);
  });

  test('are all counted when the process stops', async () => {
    const { fail, told, stop } = failing();
    for (let i = 0; i < 30; i++) fail(`coin ${i}`);
    expect(told()).toHaveLength(1);
    stop.abort();
    await new Promise((resolve) => setImmediate(resolve));
    const [rest] = told();
    expect(rest).toMatchObject({ count: 29 });
    expect(rest.names).toHaveLength(10);
  });
});
