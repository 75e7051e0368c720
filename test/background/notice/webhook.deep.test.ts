/** The longer case of webhook.test.ts. */
import { expect, onTestFinished, test } from 'vitest';
import { createWebhook } from '../../../src/background/notice/webhook.ts';
import { startHook } from '../../support/hook.ts';

test('a webhook that takes longer than 15 seconds counts as having taken the message: it does not get the message again', async () => {
  const hook = await startHook();
  const webhook = createWebhook(hook.url);
  onTestFinished(async () => {
    await webhook.close();
    await hook.close();
  });
  hook.answer = (_, response) => void setTimeout(() => response.end('ok'), 17_000);
  expect(await webhook.post('text')).toEqual({ kind: 'taken' });
});
