import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCli } from '../../support/program.ts';

let home: string;
let folder: string;
beforeEach(() => {
  home = mkdtempSync(path.join(tmpdir(), 'chandler-demo-'));
  // As root, the embedded server runs as another user, who must be able to enter the folder.
  chmodSync(home, 0o755);
  folder = path.join(home, 'demo');
  mkdirSync(folder);
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

/** As a user runs it: the built program in its own process. */
const demo = () => runCli(['demo'], { CHANDLER_HOME: home });

test('the demo starts from nothing, whatever a killed demo left, and shows the proof and the queries', async () => {
  writeFileSync(path.join(folder, 'made-by-demo'), '');
  mkdirSync(path.join(folder, 'data.new-of-a-killed-demo'));
  const { code, out, err } = await demo();
  expect({ code, err: /^error/m.test(err) }).toEqual({ code: 0, err: false });
  expect(existsSync(path.join(folder, 'data.new-of-a-killed-demo'))).toBe(false);
  expect(out.match(/^Done: nothing left to fetch\.$/gm)).toHaveLength(1);
  // The recording ends six hours before the requested end. One answer does not prove that there is nothing.
  expect(out).toMatch(/^Not complete: 6 slots without a final answer\. Run the same command again from /m);
  expect(out).toMatch(/^btc-bitcoin +1h usd +33,258 +33,258 +0 +0 +3fcccba67a809c46 +ok$/m);
  expect(out).toContain('Every covered slot has exactly what the upstream answered.');
  expect(out).toMatch(/^2017-12-01 +9947\.67 +19666\.00 +9370\.11 +13880\.00 +\d+ +31$/m);
  expect(out.trimEnd().split('\n').slice(-6)).toEqual([
    expect.stringMatching(/^▸ Done in \d/),
    expect.stringMatching(/^The upstream counted \d+ requests and answered \d+ of them with a fault\. /),
    expect.stringContaining(`CHANDLER_HOME=${folder} npx chandler sql "select * from market.candles limit 5"`),
    expect.stringMatching(/^In a browser: +CHANDLER_HOME=\S+ npx chandler ui, then http:\/\/127\.0\.0\.1:8081\/$/),
    'The real upstream gives a year of daily prices without a key, in one request a coin:',
    '  npx chandler backfill --top 50 --start -365d --series prices',
  ]);
});

test('the demo deletes nothing in a folder that it has not made', async () => {
  writeFileSync(path.join(folder, 'letters.txt'), 'dear');
  expect(await demo()).toMatchObject({ code: 2, err: expect.stringContaining('was not made by an earlier demo') });
  expect(existsSync(path.join(folder, 'letters.txt'))).toBe(true);
});
