/** Processes and takers that share one ledger, in a database of their own. */
import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import readline from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createQuota } from '../../src/quota/ledger.ts';
import type { Limits } from '../../src/quota/quota.ts';
import { ensureBuilt } from '../support/build.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

export let database: TestDatabase;
export function useDatabase(): void {
  beforeAll(async () => {
    await ensureBuilt();
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());
}

/** The overruns of all races, including a race that is repeated because it was slow: a busy machine may lose permits, but may not exceed a limit. */
const overruns: string[] = [];
export const atMost = (what: string, found: number, limit: number) => {
  if (found > limit) overruns.push(`${what}: ${found} of ${limit}`);
};

type Sent = { readonly sendAt: number; readonly now: number };
type Process = {
  readonly child: ChildProcess;
  readonly sent: Sent[];
  ready: Promise<void>;
  readonly ended: Promise<string[]>;
};

/** Waits for a message on standard input, then takes permits until denied. */
export function startTakers(args: {
  accountId: string;
  limits: Limits;
  takers: number;
  name: string;
  forMs: number;
}): Process {
  const script = path.join(path.dirname(fileURLToPath(import.meta.url)), 'taker.mjs');
  const child = spawn(process.execPath, [script, JSON.stringify({ url: database.url, ...args })], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const sent: Sent[] = [];
  let isReady: () => void = () => undefined;
  const ready = new Promise<void>((resolve, reject) => {
    isReady = resolve;
    child.once('exit', (code) => reject(new Error(`a taker ended with ${code} before it was ready`)));
  });
  const ends: string[] = [];
  const lines = readline.createInterface({ input: child.stdout! });
  lines.on('line', (line) => {
    const message = JSON.parse(line);
    if (message.ready) isReady();
    else if (message.ends) ends.push(...message.ends);
    else sent.push(message);
  });
  const ended = new Promise<string[]>((resolve) => lines.on('close', () => resolve(ends)));
  return { child, sent, ready, ended };
}

export function quotaOf(accountId: string, limits: Limits) {
  const reserved = () => ({ day: 0, month: 0 });
  return createQuota({
    sql: database.ledger,
    reads: database.sql,
    clock: systemClock,
    accountId,
    limits,
    reserved,
    useDatabaseClock: true,
    random: () => 0,
  });
}

export function mostInAnySecond(instants: readonly number[]): number {
  let most = 0;
  for (let from = 0, to = 0; to < instants.length; to++) {
    while (instants[to]! - instants[from]! >= 1000) from++;
    most = Math.max(most, to - from + 1);
  }
  return most;
}

/** The times at which the requests were really sent. */
export function nowsOf(sent: readonly Sent[]): number[] {
  return sent.map((s) => s.now).sort((a, b) => a - b);
}

export async function race(accountId: string, limits: Limits, forMs: number) {
  const processes = [0, 1, 2, 3].map((i) =>
    startTakers({ accountId, limits, takers: 8, name: `backfill ${i}`, forMs }),
  );
  await Promise.all(processes.map((p) => p.ready));
  for (const { child } of processes) child.stdin!.write('go\n');
  const ends = (await Promise.all(processes.map((p) => p.ended))).flat();
  const sent = processes.flatMap((p) => p.sent).sort((a, b) => a.sendAt - b.sendAt);
  return { sent, ends, sendAts: sent.map((s) => s.sendAt) };
}

export function testOverruns(): void {
  it('no race had a request too many, however busy the machine was', () => {
    expect(overruns).toEqual([]);
  });
}
