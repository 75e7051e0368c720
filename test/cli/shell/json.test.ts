import { describe, expect, test } from 'vitest';
import { createIo } from '../../../src/cli/shell/io.ts';
import { printJsonArray } from '../../../src/cli/shell/json.ts';
import { runCommand, sink } from '../../support/cli.ts';

const ABSENT = 'postgres://chandler:hunter2@127.0.0.1:1/chandler';

describe('a command with --json that fails prints one JSON document, too', () => {
  test.each<[string[], number, RegExp]>([
    [['plan', 'btc-bitcoin', '--start', 'now'], 2, /^--start now is now, and nothing has begun since; choose an/],
    [['plan', 'btc-bitcoin', '--start', '2099-01-01'], 2, /^--start 2099-01-01 lies in the future/],
    [['backfill', '--start', '-30d'], 2, /^No coins given/],
    [['gaps', '--interval', '1d'], 2, /^option '--interval <interval>' argument '1d' is invalid/],
    [['verify', '--jsn'], 2, /^unknown option '--jsn'/],
    [['status'], 1, /^no Postgres answers at 127\.0\.0\.1:1 /],
    [['quota'], 1, /^no Postgres answers/],
    [['migrate'], 1, /^no Postgres answers/],
    [['sql', 'select 1'], 1, /^no Postgres answers/],
  ])('%j', async (argv, exitCode, message) => {
    const { code, out, err } = await runCommand([...argv, '--json'], { env: { DATABASE_URL: ABSENT } });
    expect(code).toBe(exitCode);
    expect(JSON.parse(out)).toEqual({ error: expect.stringMatching(message), exitCode });
    expect(err).toMatch(/^error: /);
  });

  test('even when half an array was printed: the document says that it is not complete', async () => {
    const [stdout, text] = sink();
    const [stderr] = sink();
    const { out } = createIo({ stdin: process.stdin, stdout, stderr });
    async function* rows() {
      yield { slots: 1 };
      throw new Error('the connection was lost');
    }
    await expect(printJsonArray(out, rows())).rejects.toThrow('the connection was lost');
    expect(JSON.parse(text())).toEqual([{ slots: 1 }, { error: 'the connection was lost' }]);
  });
});
