import { readFileSync } from 'node:fs';
import net from 'node:net';
import { describe, expect, test } from 'vitest';
import { Interrupted } from '../../src/cli/shell/exit.ts';
import { runCommand } from '../support/cli.ts';

const ABSENT = 'postgres://chandler:hunter2@127.0.0.1:1/chandler';

describe('the command line', () => {
  test('without a command shows the commands, and is wrong usage', async () => {
    const { code, err } = await runCommand([]);
    expect(code).toBe(2);
    expect(err).toMatch(/Usage: chandler[\s\S]*status[\s\S]*gaps[\s\S]*Exit codes/);
  });

  test('--help and --version are printed to stdout with exit code 0', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    expect(await runCommand(['--version'])).toEqual({ code: 0, out: `${version}\n`, err: '' });
    const help = await runCommand(['gaps', '--help']);
    expect(help).toMatchObject({ code: 0, err: '' });
    expect(help.out).toContain('--reason');
  });

  test('--help shows defaults as a user would type them', async () => {
    const { out: backfill } = await runCommand(['backfill', '--help']);
    expect(backfill).toMatch(/\(default:\s+5m\)/);
    expect(backfill).toContain('(default: 24h)');
    const { out: simulate } = await runCommand(['simulate', '--help']);
    expect(simulate).toContain('(default: 8090)');
    expect(simulate).not.toMatch(/[{"]/);
    const { out: create } = await runCommand(['help', 'keys', 'create']);
    expect(create).toContain('Usage: chandler keys create');
  });

  test.each<[string[], RegExp]>([
    [['statsu'], /unknown command 'statsu'[\s\S]*Did you mean status/],
    [['help', 'statsu'], /unknown command 'statsu'[\s\S]*Did you mean status/],
    [['Status', '--help'], /unknown command 'Status'[\s\S]*Did you mean status/],
    [['gaps', '--jsn'], /unknown option '--jsn'[\s\S]*Did you mean --json/],
    [['gaps', '--interval', '1d'], /'--interval <interval>' argument '1d' is invalid.*5m, 15m.*did you mean 24h/],
    [['gaps', '--quote', 'eur'], /argument 'eur' is invalid.*usd, btc/],
    [['gaps', '--reason', 'provisonal'], /did you mean provisional/],
    [['gaps', '--limit', '-1'], /argument '-1' is invalid.*above 0/],
    [['gaps', '--limit'], /argument missing/],
    [['migrate', 'now'], /too many arguments/],
    [['simulate', '--port', '70000'], /from 0 to 65535/],
    [['analyst', 'create', 'ann', '--statement-timeout', '0s'], /'0s' is invalid.*between 1s and 24d/],
    [['analyst', 'create', 'ann', '--statement-timeout', '99d'], /'99d' is invalid.*between 1s and 24d/],
    [['simulate', '--faults', '500'], /argument '500' is invalid/],
    [['simulate', '--key', 'pro'], /--key abc=pro/],
    [['simulate', '--key', 'abc=prro'], /did you mean pro/],
  ])('%j is wrong usage, and the error says what would be right', async (argv, message) => {
    const { code, out, err } = await runCommand(argv, { env: { DATABASE_URL: ABSENT } });
    expect(code).toBe(2);
    expect(out).toBe('');
    expect(err).toMatch(message);
  });

  test('names every wrong setting before it starts anything', async () => {
    const env = { LOG_LEVEL: 'loud', CHANDLER_APIKEY: 'hunter2', DATABASE_URL: 'nonsense' };
    const { code, err } = await runCommand(['status'], { env });
    expect(code).toBe(2);
    expect(err).toMatch(/3 settings are wrong/);
    expect(err).toContain('did you mean CHANDLER_API_KEY?');
    expect(err).not.toContain('hunter2');
  });

  test('reports a database that does not answer in one sentence, without the password and without a stack', async () => {
    const { code, err } = await runCommand(['status'], { env: { DATABASE_URL: ABSENT } });
    expect(code).toBe(1);
    expect(err).toBe(
      'error: no Postgres answers at 127.0.0.1:1 (connection refused); start it, or correct host and port in DATABASE_URL\n',
    );
  });

  test('says what to use in place of sql when psql is not installed', async () => {
    const { code, err } = await runCommand(['sql', '\\d market.candles'], { env: { PATH: '' } });
    expect(code).toBe(2);
    expect(err).toMatch(/psql is not on the PATH for \\d market.candles.*chandler sql "select/);
  });

  test('calls sql without a statement wrong usage', async () => {
    expect(await runCommand(['sql'], { stdin: '  \n' })).toMatchObject({
      code: 2,
      err: expect.stringContaining('no statement'),
    });
  });

  test('does not start a command that was interrupted before its start', async () => {
    const { code, err } = await runCommand(['status'], {
      signal: AbortSignal.abort(new Interrupted('interrupted by SIGINT')),
    });
    expect(code).toBe(130);
    expect(err).toBe('error: interrupted by SIGINT\n');
  });
});

type ToolAnswer = { readonly result: { readonly content: readonly { readonly text: string }[] } };

describe('simulate', () => {
  test('serves at the printed address until it is interrupted, and then prints the number of requests', async () => {
    const stop = new AbortController();
    let answered: Promise<unknown> | undefined;
    const { code, out } = await runCommand(['simulate', '--port', '0', '--market', 'recorded', '--plan', 'ultimate'], {
      signal: stop.signal,
      onOutput: (text) => {
        const base = /at (http:\S+\/v1)$/m.exec(text)?.[1];
        if (base === undefined || answered !== undefined) return;
        answered = fetch(`${base}/coins`)
          .then((answer) => answer.json())
          .finally(() => stop.abort(new Interrupted('interrupted by SIGINT')));
      },
    });
    expect(await answered).toMatchObject([{ id: 'btc-bitcoin' }, { id: 'eth-ethereum' }, { id: 'ltc-litecoin' }]);
    expect(code).toBe(0);
    expect(out).toContain("recorded market with the ultimate plan's limits");
    expect(out).toContain('Answered 1 request (0 for candles), 0 faults.');
  });

  test('without limits also gives the fields and tools of the largest plan, unless a plan is given', async () => {
    const planTold = async (...more: string[]) => {
      const stop = new AbortController();
      let told: Promise<string> | undefined;
      await runCommand(['simulate', '--port', '0', '--unlimited', ...more], {
        signal: stop.signal,
        onOutput: (text) => {
          const origin = /at (http:\S+)\/v1$/m.exec(text)?.[1];
          if (origin === undefined || told !== undefined) return;
          const body = {
            jsonrpc: '2.0',
            id: 1,
            method: 'tools/call',
            params: { name: 'getCapabilities', arguments: {} },
          };
          told = fetch(`${origin}/rpc`, {
            method: 'POST',
            body: JSON.stringify(body),
            headers: { 'Content-Type': 'application/json' },
          })
            .then(async (answer) => JSON.parse(((await answer.json()) as ToolAnswer).result.content[0]!.text).plan)
            .finally(() => stop.abort(new Interrupted('interrupted by SIGINT')));
        },
      });
      return told;
    };
    expect(await planTold()).toBe('enterprise');
    expect(await planTold('--plan', 'free')).toBe('free');
  });

  test('names a port that is in use', async () => {
    const taken = net.createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => taken.once('listening', resolve));
    const { port } = taken.address() as net.AddressInfo;
    const { code, err } = await runCommand(['simulate', '--port', String(port)]);
    taken.close();
    expect(code).toBe(1);
    expect(err).toBe(
      `error: port ${port} of 127.0.0.1 is in use by another program; choose another port with --port, or for serve and service with CHANDLER_LISTEN or CHANDLER_OPERATIONS_LISTEN\n`,
    );
  });
});
