/** Checks the webhook: whether it is encrypted and, with `--online`, whether it accepts a message. */
import { createWebhook } from '../../background/notice/webhook.ts';
import type { Notify } from '../../core/settings/notice-settings.ts';
import { type Check, fail, ok, warn } from './check.ts';

export async function checkWebhook(
  { url, events }: Notify,
  { send, signal }: { readonly send: boolean; readonly signal: AbortSignal },
): Promise<Check[]> {
  const { protocol, hostname, host } = new URL(url);
  const isOpen = protocol === 'http:' && !/^(localhost|127\.|\[::1\])/.test(hostname);
  const open = isOpen
    ? [warn('webhook', `messages to ${host} are not encrypted`, 'use an https:// address in CHANDLER_WEBHOOK_URL')]
    : [];
  if (!send) return [...open, ok('webhook', `${host} is notified of ${events.join(', ')}`)];
  const webhook = createWebhook(url);
  try {
    const delivery = await webhook.post('chandler doctor: messages of Chandler arrive here.', signal);
    if (delivery.kind === 'taken') return [...open, ok('webhook', `${host} accepted a message`)];
    return [...open, fail('webhook', delivery.message, 'correct CHANDLER_WEBHOOK_URL, or check the receiver')];
  } finally {
    await webhook.close();
  }
}
