import { describe, expect, test } from 'vitest';
import { createLog, maskPasswords } from '../src/log.ts';

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

  test('leaves out what lies below the level', () => {
    const { log, lines } = capture();
    log.debug('quiet');
    expect(lines).toEqual([]);
  });

  test.each([false, true])('never writes a secret, wherever it turns up (readable: %s)', (readable) => {
    const { log, lines } = capture({ readable, secrets: ['s3cret-key'] });
    log.info({ apiKey: 'other', header: 'Bearer s3cret-key' }, 'sent s3cret-key');
    log.error(new Error('postgres://chandler:hunter2@db:5432/x refused s3cret-key'));
    const text = lines.join('');
    expect(text).not.toMatch(/s3cret-key|hunter2|other/);
    expect(text).toContain('postgres://chandler:***@db:5432/x');
  });

  test('on a terminal writes the time, the level, the message and the fields on one line', () => {
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
