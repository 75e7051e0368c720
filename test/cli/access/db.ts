/** A folder of its own for the embedded server. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { stopEmbedded } from '../../../src/store/embedded/embedded.ts';
import { runCommand } from '../../support/cli.ts';

let parent: string;
export let home: string;

export function useHome(): void {
  beforeEach(() => {
    parent = mkdtempSync(path.join(os.tmpdir(), 'chandler-db-'));
    // Root runs the server as another user, who must be able to enter it.
    chmodSync(parent, 0o755);
    home = path.join(parent, 'home');
  });
  afterEach(async () => {
    await stopEmbedded({ home, clock: systemClock });
    rmSync(parent, { recursive: true, force: true });
  });
}

export const db = (...argv: string[]) => runCommand(['db', ...argv], { env: { CHANDLER_HOME: home } });
export const status = async () => JSON.parse((await db('status', '--json')).out);
