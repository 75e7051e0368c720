/** The demo with --stay: a service over the demo's warehouse, with the dashboard. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { startCli } from '../../support/program.ts';

test('demo --stay runs on as a service whose dashboard opens and whose key signs in', async () => {
  const home = mkdtempSync(path.join(tmpdir(), 'chandler-demo-'));
  // As root, the embedded server runs as another user, who must be able to enter the folder.
  chmodSync(home, 0o755);
  const demo = await startCli(['demo', '--stay'], { CHANDLER_HOME: home, CHANDLER_LISTEN: '127.0.0.1:0' });
  try {
    let out = '';
    const key = await new Promise<string>((resolve, reject) => {
      demo.process.stdout!.on('data', (part: Buffer) => {
        out += part;
        const found = /sign in with (\S+)\n/.exec(out);
        if (found !== null) resolve(found[1]!);
      });
      demo.ended.then(({ err }) => reject(new Error(err.slice(-2_000))));
    });
    const url = /It is at (\S+) until/.exec(out)![1]!;
    await expect.poll(async () => (await fetch(url)).status, { timeout: 60_000 }).toBe(200);
    expect(await (await fetch(url)).text()).toContain('Needs attention');
    const body = new URLSearchParams({ key, next: '/' });
    const signedIn = await fetch(`${url}ui/sign-in`, { method: 'POST', body, redirect: 'manual' });
    expect(signedIn.status).toBe(303);
  } finally {
    demo.process.kill('SIGTERM');
    await demo.ended;
    rmSync(home, { recursive: true, force: true });
  }
});
