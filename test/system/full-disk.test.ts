import { describe, expect, test } from 'vitest';
import { canMount, expectOneSentence, FULL, onDisk, useUpstream } from './full-disk.ts';

useUpstream();

describe.skipIf(!canMount)('the embedded server', () => {
  test('on a disk too small for it says so and leaves nothing behind; with more room it works', async () => {
    const [first, second] = await onDisk(
      'size=25m,mode=755',
      `chandler status
       ls -A /mnt/home
       mount -o remount,size=200m /mnt
       chandler migrate`,
    );
    expect(first!.code).toBe(1);
    expectOneSentence(first!.text, FULL);
    // What was left in the folder between the two.
    expect(second!.text).not.toMatch(/^data$/m);
    expect(second!.code).toBe(0);
  });

  test('in a folder on a read-only disk says so', async () => {
    const [first] = await onDisk('ro,size=1m', 'chandler plan btc-bitcoin --start -30d');
    expect(first!.code).toBe(2);
    expectOneSentence(
      first!.text,
      /error: the data folder \/mnt\/home is on a read-only disk; choose another folder with CHANDLER_HOME/,
    );
  });
});

describe.skipIf(!canMount)('an export', () => {
  test('to a new folder on a read-only disk says so, and plans nothing', async () => {
    const [, exported] = await onDisk(
      'ro,size=1m',
      `export CHANDLER_HOME=$(mktemp -d)
       chandler migrate
       chandler export --out /mnt/new/files
       rm -rf "$CHANDLER_HOME"`,
    );
    expect([exported!.code, exported!.text]).toEqual([
      2,
      'error: --out: nothing can be written to /mnt/new/files (the disk is read-only); name another folder.\n',
    ]);
  });
});
