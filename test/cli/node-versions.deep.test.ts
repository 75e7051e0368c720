/** The program on each version of Node on which it must run, whichever one runs the tests. */
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { startCli } from '../support/program.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const FETCHED = path.join(ROOT, 'node_modules/.cache/node-versions');
const versions = existsSync(FETCHED) ? readdirSync(FETCHED) : [];
if (versions.length === 0) {
  const message = 'no other versions of Node: run .ci/node-versions node_modules/.cache/node-versions';
  if (process.env.CI === 'true' || process.env.CI === '1') throw new Error(`${message} (in CI nothing may be skipped)`);
  process.stderr.write(`\n${message}; the suites that need them are skipped\n\n`);
}

const nodeOf = (version: string) => path.join(FETCHED, version, 'bin/node');

describe.skipIf(versions.length === 0)('on other versions of Node', () => {
  test('the oldest one that is supported and that of the image are among them', () => {
    const read = (name: string) => readFileSync(path.join(ROOT, name), 'utf8');
    const oldest = /^>=(\d+\.\d+)$/.exec(JSON.parse(read('package.json')).engines.node)![1];
    const [, image] = /^FROM node:([\d.]+)-/m.exec(read('Dockerfile'))!;
    expect(versions).toEqual(expect.arrayContaining([`${oldest}.0`, image]));
  });

  // Node itself writes its warnings there, and V8 complains there about a flag that it does not know.
  test.each(versions)('Node %s: a command writes nothing to standard error', async (version) => {
    const { ended } = await startCli(['plan', '--help'], {}, nodeOf(version));
    expect(await ended).toMatchObject({ code: 0, err: '', out: expect.stringContaining('Usage: chandler plan') });
  });

  test.each(versions)('Node %s: the demo proves its warehouse, then a service serves it', async (version) => {
    const home = mkdtempSync(path.join(tmpdir(), 'chandler-node-'));
    // As root, the embedded server runs as another user, who must be able to enter the folder.
    chmodSync(home, 0o755);
    const env = { CHANDLER_HOME: home, CHANDLER_LISTEN: '127.0.0.1:0' };
    const demo = await startCli(['demo', '--stay'], env, nodeOf(version));
    try {
      let out = '';
      const url = await new Promise<string>((resolve, reject) => {
        demo.process.stdout!.on('data', (part: Buffer) => {
          out += part;
          const found = /It is at (\S+) until/.exec(out);
          if (found !== null) resolve(found[1]!);
        });
        demo.ended.then(({ err }) => reject(new Error(err.slice(-2_000))));
      });
      const coin = async () => (await fetch(`${url}v1/coins/btc-bitcoin`)).json();
      await expect.poll(coin).toMatchObject({ id: 'btc-bitcoin', symbol: 'BTC' });
      expect(out).toContain('Every covered slot has exactly what the upstream answered.');
    } finally {
      demo.process.kill('SIGTERM');
      const { err } = await demo.ended;
      rmSync(home, { recursive: true, force: true });
      expect(err).not.toMatch(/^Error|Warning|unrecognized/m);
    }
  });
});
