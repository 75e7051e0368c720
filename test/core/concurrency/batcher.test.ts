import { EventEmitter, once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { createBatcher } from '../../../src/core/concurrency/batcher.ts';

describe('a batcher', () => {
  it('runs the calls of one moment as one batch, and those that arrive meanwhile as the next batch', async () => {
    const batches: (readonly number[])[] = [];
    const gate = new EventEmitter();
    const double = createBatcher(async (items: readonly number[]) => {
      batches.push([...items]);
      if (batches.length === 1) await once(gate, 'open');
      return items.map((item) => item * 2);
    });
    const first = [double(1), double(2)];
    await Promise.resolve();
    await Promise.resolve();
    expect(batches).toEqual([[1, 2]]);
    const second = [double(3), double(4), double(5)];
    gate.emit('open');
    expect(await Promise.all([...first, ...second])).toEqual([2, 4, 6, 8, 10]);
    expect(batches).toEqual([
      [1, 2],
      [3, 4, 5],
    ]);
  });

  it('rejects the calls of a batch that fails, and goes on with the next batch', async () => {
    let isFailing = true;
    const run = createBatcher(async (items: readonly string[]) => {
      if (isFailing) throw new Error('away');
      return items;
    });
    const [a, b] = [run('a'), run('b')];
    await expect(a).rejects.toThrow('away');
    await expect(b).rejects.toThrow('away');
    isFailing = false;
    expect(await run('c')).toBe('c');
  });
});
