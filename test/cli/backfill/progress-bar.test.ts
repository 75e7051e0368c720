import { PassThrough, Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { createProgress, type ProgressState, type QuotaForecast } from '../../../src/cli/backfill/progress-bar.ts';
import { canAsk, confirm } from '../../../src/cli/input/confirm.ts';
import { Interrupted } from '../../../src/cli/shell/exit.ts';
import { createIo } from '../../../src/cli/shell/io.ts';
import type { Clock } from '../../../src/clock.ts';
import { sink } from '../../support/cli.ts';

/** A clock that moves only when a test moves it. It wakes sleepers on the way. */
function manualClock() {
  let now = Date.UTC(2024, 0, 1);
  const sleepers: { at: number; wake: () => void }[] = [];
  const clock: Clock = {
    now: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        sleepers.push({ at: now + ms, wake: resolve });
        signal?.addEventListener('abort', () => reject(signal.reason));
      }),
  };
  const pass = async (ms: number) => {
    now += ms;
    for (const sleeper of sleepers.filter(({ at }) => at <= now)) sleeper.wake();
    await new Promise(setImmediate);
  };
  return { clock, pass };
}

function openProgress(
  columns?: number,
  { env = {}, forecast = (() => null) as QuotaForecast, underWay = (): number => 0 } = {},
) {
  const [stderr, text] = sink(columns);
  const io = createIo({ stdin: Readable.from([]), stdout: new PassThrough(), stderr, env });
  const { clock, pass } = manualClock();
  const settle = () => new Promise(setImmediate);
  return {
    progress: createProgress(io.err, clock, { forecast, underWay, gapMs: 0 }),
    err: io.err,
    clock,
    pass,
    text,
    settle,
  };
}

const begun: ProgressState = {
  chunksDone: 0,
  chunksTotal: 200,
  candles: 0,
  noun: 'candle',
  requests: 0,
  quotaLeft: 1000,
  waiting: null,
};

describe('a progress bar without a terminal', () => {
  test('writes the first state, then a line every five seconds, then the last state', async () => {
    const { progress, pass, text } = openProgress();
    progress.update(begun);
    await pass(4000);
    progress.update({ ...begun, chunksDone: 40, candles: 14_640, quotaLeft: 960 });
    await pass(1000);
    progress.update({ ...begun, chunksDone: 60, candles: 21_960, quotaLeft: 940 });
    progress.done();
    progress.done();
    await pass(60_000);
    expect(text().split('\n')).toEqual([
      '0 of 200 requests, 0 candles, quota left 1,000',
      '40 of 200 requests, 14,640 candles, 2,928/s, quota left 960, 20 s to go',
      '60 of 200 requests, 21,960 candles, 4,392/s, quota left 940, 11 s to go',
      '',
    ]);
  });

  test('shows no rate and no time left while no answers come', async () => {
    const { progress, pass, text } = openProgress(undefined, { underWay: () => 3 });
    progress.update(begun);
    await pass(4000);
    progress.update({ ...begun, chunksDone: 40, candles: 14_640, requests: 40, quotaLeft: 960 });
    await pass(1000);
    await pass(5000);
    await pass(5000);
    progress.done();
    expect(text().split('\n')).toEqual([
      '0 of 200 requests, 0 candles, quota left 1,000',
      '40 of 200 requests, 14,640 candles, 2,928/s, quota left 960, 20 s to go',
      '40 of 200 requests, 14,640 candles, quota left 960, waits for 3 answers, none for 6 s',
      '40 of 200 requests, 14,640 candles, quota left 960, waits for 3 answers, none for 11 s',
      expect.stringContaining('40 of 200 requests'),
      '',
    ]);
  });

  test('shows no total once it goes beyond the plan', async () => {
    const { progress, text } = openProgress(undefined, { underWay: () => 3 });
    progress.update({ ...begun, chunksDone: 49, chunksTotal: 49, requests: 49, quotaLeft: null });
    progress.done();
    expect(text().split('\n')).toEqual([
      '49 requests, more than planned, 0 candles',
      '49 of 49 requests, 0 candles',
      '',
    ]);
  });

  test('shows what it waits for in place of a rate, and repeats no line', async () => {
    const { progress, clock, pass, text, settle } = openProgress();
    const waiting = { reason: 'month', until: clock.now() + 3_600_000 };
    progress.update({ ...begun, quotaLeft: null, waiting });
    await pass(1);
    await settle();
    progress.done();
    await settle();
    expect(text().split('\n')).toEqual([
      "0 of 200 requests, 0 candles, waits 1h: this month's requests are used up",
      "0 of 200 requests, 0 candles, waits 59m 59s: this month's requests are used up",
      '',
    ]);
  });
});

describe('a progress bar on a terminal', () => {
  test('draws a bar no wider than the terminal, and restores the cursor', async () => {
    const { progress, err, pass, text, settle } = openProgress(100);
    progress.update(begun);
    await pass(5000);
    progress.update({ ...begun, chunksDone: 50, candles: 18_300, quotaLeft: 950 });
    err.write('a line that stays\n');
    progress.done();
    await settle();
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the terminal's own
    const lines = text().split(/\r|\n|\x1b\[[\d;?]*[A-Za-z]/);
    const last = lines.filter((line) => line.includes('%')).at(-1)!;
    expect(last).toMatch(/^█+░+ 25% {2}50 of 200 requests, 18,300 candles, 3,660\/s, quota left 950, 15 s to go$/);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(100);
    expect(lines).toContain('a line that stays');
    expect(text().lastIndexOf('\x1b[?25h')).toBeGreaterThan(text().lastIndexOf('\x1b[?25l'));
  });
});

test('shows the rate and what is left, however often it is updated', async () => {
  const { progress, pass, text, settle } = openProgress(100);
  for (let i = 0; i <= 40; i++) {
    progress.update({ ...begun, chunksDone: i, candles: i * 366, quotaLeft: null });
    await pass(100);
  }
  progress.done();
  await settle();
  expect(text()).toMatch(/40 of 200 requests, 14,640 candles, 3,\d\d\d\/s, 1\d s to go/);
});

describe('the remaining time', () => {
  const lastOf = async (states: readonly ProgressState[], ms: number, forecast?: QuotaForecast) => {
    const { progress, pass, text } = openProgress(undefined, { forecast });
    for (const state of states) {
      progress.update(state);
      await pass(ms);
    }
    progress.done();
    return text().trimEnd().split('\n').at(-1);
  };

  test('is not estimated from the first answers', async () => {
    expect(await lastOf([begun, { ...begun, chunksDone: 1, candles: 366 }], 600)).toBe(
      '1 of 200 requests, 366 candles, 305/s, quota left 1,000',
    );
    expect(await lastOf([begun, { ...begun, chunksDone: 2 }], 10_000)).toBe(
      '2 of 200 requests, 0 candles, quota left 1,000',
    );
  });

  test('is the forecast of the quota until then, and never less than the quota allows', async () => {
    // A hundred requests a day.
    const forecast = (requests: number) => Date.UTC(2024, 0, 1) + requests * 864_000;
    expect(await lastOf([begun], 0, forecast)).toContain(', 2d to go');
    const half = { ...begun, chunksDone: 100, requests: 100, candles: 36_600 };
    expect(await lastOf([begun, half], 5_000, forecast)).toContain(', 1d 23h to go');
    // One refusal finished all hundred.
    expect(await lastOf([begun, { ...half, requests: 1 }], 5_000, forecast)).toContain(', 1d to go');
  });
});

describe('a terminal', () => {
  test.each([20, 40, 60, 79])('of %i columns gets a line that fits, with the main facts', async (columns) => {
    const { progress, clock, pass, text, settle } = openProgress(columns);
    progress.update(begun);
    await pass(5000);
    progress.update({ ...begun, chunksDone: 50, candles: 18_300, quotaLeft: 950 });
    await pass(5000);
    const waiting = { reason: 'day', until: clock.now() + 7_200_000 };
    progress.update({ ...begun, chunksDone: 50, candles: 18_300, quotaLeft: 950, waiting });
    progress.done();
    await settle();
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the terminal's own
    const lines = text().split(/\r|\n|\x1b\[[\d;?]*[A-Za-z]/);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(columns);
    const last = lines.filter((line) => line.includes('%')).at(-1)!;
    expect(last).toContain('25%  50 of 200');
    if (columns >= 40) expect(last).toContain('waits 2h');
  });

  test('that can only move forward gets lines in place of a bar', async () => {
    const { progress, text } = openProgress(100, { env: { TERM: 'dumb' } });
    progress.update(begun);
    progress.done();
    expect(text()).toBe('0 of 200 requests, 0 candles, quota left 1,000\n');
  });
});

test('styles are left out where they are not wanted', () => {
  const outOf = (columns: number | undefined, env: Record<string, string>) =>
    createIo({ stdin: Readable.from([]), stdout: sink(columns)[0], stderr: new PassThrough(), env }).out;
  expect(outOf(80, {}).bold('x')).toBe('\x1b[1mx\x1b[0m');
  expect(outOf(80, { NO_COLOR: '1' }).bold('x')).toBe('x');
  expect(outOf(80, { TERM: 'dumb' }).bold('x')).toBe('x');
  expect(outOf(undefined, {}).bold('x')).toBe('x');
  expect(outOf(0, {}).columns()).toBeUndefined();
});

describe('confirm', () => {
  const ask = async (answer: string, signal = new AbortController().signal) => {
    const [stderr, text] = sink(80);
    const stdin = Object.assign(Readable.from([answer]), { isTTY: true });
    const io = createIo({ stdin, stdout: new PassThrough(), stderr });
    return { io, yes: await confirm(io, 'Spend 2,000 requests?', signal), text };
  };

  test.each([
    ['y\n', true],
    [' YES \n', true],
    ['n\n', false],
    ['\n', false],
    ['yep\n', false],
    ['', false],
  ])('takes %j as %s', async (answer, expected) => {
    const { yes, text } = await ask(answer);
    expect(yes).toBe(expected);
    expect(text()).toContain('Spend 2,000 requests? [y/N] ');
  });

  test('asks only on a terminal', async () => {
    expect(canAsk((await ask('')).io)).toBe(true);
    const piped = createIo({ stdin: Readable.from([]), stdout: new PassThrough(), stderr: new PassThrough() });
    expect(canAsk(piped)).toBe(false);
  });

  test('ends when it is interrupted', async () => {
    const stop = new AbortController();
    const [stderr] = sink(80);
    const io = createIo({ stdin: new PassThrough(), stdout: new PassThrough(), stderr });
    const answer = confirm(io, 'Go?', stop.signal);
    stop.abort(new Interrupted('interrupted by SIGINT'));
    await expect(answer).rejects.toThrow('interrupted by SIGINT');
  });
});
