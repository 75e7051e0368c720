import { getEventListeners } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { linkAbort } from '../../../src/core/concurrency/linked-abort.ts';

test('the outer signal aborts with its reason, also if it was aborted before, and not after the link has ended', () => {
  const outer = new AbortController();
  const [linked, ended] = [linkAbort(outer.signal), linkAbort(outer.signal)];
  ended.unlink();
  expect(getEventListeners(outer.signal, 'abort')).toHaveLength(1);
  outer.abort('stop');
  expect(linked.controller.signal.reason).toBe('stop');
  expect(ended.controller.signal.aborted).toBe(false);
  expect(linkAbort(outer.signal).controller.signal.reason).toBe('stop');
  expect(linkAbort(undefined).controller.signal.aborted).toBe(false);
});

test('many links to one signal are no leak of which Node warns', async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on('warning', onWarning);
  onTestFinished(() => void process.off('warning', onWarning));
  const outer = new AbortController();
  const links = Array.from({ length: 20 }, () => linkAbort(outer.signal));
  await new Promise((resolve) => setImmediate(resolve));
  expect(warnings).toEqual([]);
  for (const { unlink } of links) unlink();
  expect(getEventListeners(outer.signal, 'abort')).toEqual([]);
});
