/** What `chandler doctor` asks of the webhook: is it encrypted, and with `--online`, does it take a message? */
import { createWebhook } from '../../background/notice/webhook.ts';
import type { Notify } from '../../core/notice-settings.ts';
import { type Check, fail, ok, warn } from './check.ts';

export async function checkWebhook(
  { url, events }: Notify,
  { send, signal }: { readonly send: boolean; readonly signal: AbortSignal },
): Promise<Check[]> {
  const { protocol, hostname, host } = new URL(url);
  const isOpen = protocol === 'http:' && !/^(localhost|127\.|\[::1\])/.test(hostname);
  const open = isOpen
    ? [
        warn(
          'webhook',
          `what is sent to ${host} travels unencrypted`,
          'use an https:// address in CHANDLER_WEBHOOK_URL',
        ),
      ]
    : [];
  if (!send) return [...open, ok('webhook', `${host} is told of ${events.join(', ')}`)];
  const webhook = createWebhook(url);
  try {
    const delivery = await webhook.post('chandler doctor: messages of Chandler arrive here.', signal);
    if (delivery.kind === 'taken') return [...open, ok('webhook', `${host} has taken a message`)];
    return [...open, fail('webhook', delivery.message, 'correct CHANDLER_WEBHOOK_URL, or look at what answers there')];
  } finally {
    await webhook.close();
  }
}
