/** What open pages are sent: that something changed, and nothing when nothing changed. */
import { describe, expect, test } from 'vitest';
import { createChangeWatch, type Versions } from '../../src/dashboard/live/change-watch.ts';
import { createVirtualClock } from '../support/virtual-clock.ts';

const NOW = Date.UTC(2026, 0);
const SECOND = 1_000;
const GONE = new Error('no database');

/** A watch over versions that the test sets. Null when they cannot be read. */
function watching() {
  const clock = createVirtualClock(NOW);
  const errors: unknown[] = [];
  const state = { versions: { data: '1', requests: '1' } as Versions | null, reads: 0 };
  const watch = createChangeWatch({
    clock,
    isUnavailable: (error) => error === GONE,
    onError: (error) => errors.push(error),
    read: async () => {
      state.reads++;
      if (state.versions === null) throw GONE;
      return state.versions;
    },
  });
  /** A page that listens, and the messages it has received. */
  const open = () => {
    const leaving = new AbortController();
    const reader = watch.follow(leaving.signal).getReader();
    const told: string[] = [];
    const listening = (async () => {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        told.push(new TextDecoder().decode(value));
      }
    })();
    return { told, listening, leave: () => leaving.abort(), close: () => reader.cancel() };
  };
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= SECOND) {
      clock.advance(SECOND);
      for (let i = 0; i < 20; i++) await Promise.resolve();
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return { watch, state, open, pass, errors };
}

const eventsOf = (told: readonly string[]) =>
  told.flatMap((text) => /event: (\w+)\ndata:(.*)\n/.exec(text)?.slice(1) ?? []);

describe('open pages', () => {
  test('are told what changed, all from the same read of the database', async () => {
    const { watch, state, open, pass } = watching();
    const pages = Array.from({ length: 50 }, open);
    await pass(10 * SECOND);
    const before = state.reads;
    expect(before).toBeLessThanOrEqual(6);
    state.versions = { data: '2', requests: '1' };
    await pass(2 * SECOND);
    state.versions = { data: '3', requests: '2' };
    await pass(2 * SECOND);
    for (const { told } of pages)
      expect(eventsOf(told)).toEqual(['open', '', 'changed', ' data', 'changed', ' data requests']);
    expect(state.reads - before).toBeLessThanOrEqual(3);
    expect(watch.size()).toBe(50);
  });

  test('receive only keep-alive messages while nothing changes', async () => {
    const { open, pass } = watching();
    const { told } = open();
    await pass(60 * SECOND);
    expect(told.slice(1).every((text) => text === ': \n\n')).toBe(true);
    expect(told.length).toBeGreaterThan(2);
  });

  test('are told once that the database is unavailable, and once that it is back', async () => {
    const { state, open, pass } = watching();
    const { told } = open();
    await pass(4 * SECOND);
    state.versions = null;
    await pass(10 * SECOND);
    state.versions = { data: '1', requests: '1' };
    await pass(4 * SECOND);
    expect(eventsOf(told)).toEqual(['open', '', 'away', '', 'back', '']);
  });

  test('that connect while the database is unavailable are told so too; another error is logged', async () => {
    const { state, open, pass, errors } = watching();
    open();
    state.versions = null;
    await pass(4 * SECOND);
    const { told } = open();
    await pass(2 * SECOND);
    expect(eventsOf(told)).toEqual(['open', '', 'away', '']);
    expect(errors).toEqual([]);
    Object.defineProperty(state, 'versions', {
      get: () => {
        throw new TypeError('a defect');
      },
    });
    await pass(2 * SECOND);
    expect(errors).toEqual([new TypeError('a defect')]);
  });

  test('that left before the watch followed them are not kept', () => {
    const { watch } = watching();
    for (let i = 0; i < 10; i++) watch.follow(AbortSignal.abort());
    expect(watch.size()).toBe(0);
  });

  test('are served by reads of the database only while at least one of them is connected', async () => {
    const { watch, state, open, pass } = watching();
    const [first, second] = [open(), open()];
    await pass(4 * SECOND);
    first.leave();
    await second.close();
    await pass(4 * SECOND);
    const { reads } = state;
    expect(watch.size()).toBe(0);
    await pass(60 * SECOND);
    expect(state.reads).toBe(reads);
    open();
    await pass(4 * SECOND);
    expect(state.reads).toBeGreaterThan(reads);
  });

  test('that do not read are dropped, and may connect again', async () => {
    const { watch, state, pass } = watching();
    watch.follow(new AbortController().signal);
    for (let i = 0; i < 120; i++) {
      state.versions = { data: String(i + 2), requests: '1' };
      await pass(2 * SECOND);
    }
    expect(watch.size()).toBe(0);
  });
});
