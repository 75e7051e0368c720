import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createWebhook, type Delivery, type Webhook } from '../../../src/background/notice/webhook.ts';
import { type Hook, startHook } from '../../support/hook.ts';

let hook: Hook;
let webhook: Webhook;
beforeEach(async () => {
  hook = await startHook();
  webhook = createWebhook(hook.url);
});
afterEach(async () => {
  await webhook.close();
  await hook.close();
});

describe('a webhook', () => {
  test('gets JSON in the form of Slack by POST, with everything escaped that Slack would read as markup', async () => {
    hook.answer = (request, response) => {
      expect(request.method).toBe('POST');
      expect(request.headers['content-type']).toBe('application/json; charset=utf-8');
      response.end();
    };
    expect(await webhook.post('a & b < c > d “é”')).toEqual({ kind: 'taken' });
    expect(JSON.parse(hook.posts[0]!)).toEqual({ text: 'a &amp; b &lt; c &gt; d “é”' });
  });

  test('a long text is cut', async () => {
    await webhook.post('x'.repeat(10_000));
    expect(hook.texts()[0]).toMatch(/^x{3500}…$/);
  });

  test.each<[string, Hook['answer'], Delivery]>([
    [
      'an outage',
      (_, response) => void response.writeHead(500).end('<html>oops'),
      { kind: 'failed', message: 'HOST answered 500', retryAfterMs: null },
    ],
    [
      'a limit that says for how long',
      (_, response) => void response.writeHead(429, { 'retry-after': '30' }).end('rate_limited'),
      { kind: 'failed', message: 'HOST answered 429 (rate_limited)', retryAfterMs: 30_000 },
    ],
    [
      'a hook that is gone',
      (_, response) => void response.writeHead(404).end('no_service\n'),
      { kind: 'failed', message: 'HOST answered 404 (no_service)', retryAfterMs: null },
    ],
    [
      'a text that it does not take',
      (_, response) => void response.writeHead(400).end('invalid_payload'),
      { kind: 'refused', message: 'HOST answered 400 (invalid_payload)' },
    ],
    [
      'one that hangs up',
      (request) => void request.socket.destroy(),
      {
        kind: 'failed',
        message: 'HOST closed the connection before the whole response had arrived',
        retryAfterMs: null,
      },
    ],
  ])('%s', async (_, answer, expected) => {
    hook.answer = answer;
    const delivery = await webhook.post('hello');
    const shown =
      'message' in delivery ? { ...delivery, message: delivery.message.replace(webhook.host, 'HOST') } : delivery;
    expect(shown).toEqual(expected);
  });

  test('that never answers has failed after the deadline', async () => {
    hook.answer = () => undefined;
    const impatient = createWebhook(hook.url, { deadlineMs: 500 });
    const message = `${impatient.host} did not answer within 0.5 s`;
    expect(await impatient.post('hello')).toEqual({ kind: 'failed', message, retryAfterMs: null });
    await impatient.close();
  });

  test('a redirect is not followed: the operator has not allowed the other address', async () => {
    const elsewhere = await startHook();
    try {
      hook.answer = (_, response) => void response.writeHead(307, { location: elsewhere.url }).end();
      expect(await webhook.post('hello')).toMatchObject({
        kind: 'failed',
        message: expect.stringMatching(/307: it redirects/),
      });
      expect(elsewhere.posts).toEqual([]);
    } finally {
      await elsewhere.close();
    }
  });

  test('an address that the webhook echoes does not appear in our messages', async () => {
    hook.answer = (request, response) => void response.writeHead(403).end(`no access to ${request.url}`);
    const delivery = await webhook.post('hello');
    expect(delivery).toMatchObject({ kind: 'failed', message: expect.stringMatching(/403 \(no access to \*\*\*\)$/) });
    expect(JSON.stringify(delivery)).not.toContain(hook.secret);
  });

  test('an endless response is judged by its status, and cut', async () => {
    hook.answer = (_, response) => {
      response.writeHead(200);
      const drip = () => {
        if (!response.destroyed && response.write('y'.repeat(1_000))) setImmediate(drip);
        else response.once('drain', drip);
      };
      drip();
    };
    expect(await webhook.post('hello')).toEqual({ kind: 'taken' });
  });

  test('an address where nothing listens is a failure', async () => {
    const nobody = createWebhook('http://127.0.0.1:1/hook');
    expect(await nobody.post('hello')).toEqual({
      kind: 'failed',
      message: '127.0.0.1:1 refused the connection: nothing listens there',
      retryAfterMs: null,
    });
    await nobody.close();
  });

  test('a stop aborts the request', async () => {
    const stop = new AbortController();
    hook.answer = () => stop.abort(new Error('stop'));
    await expect(webhook.post('hello', stop.signal)).rejects.toThrow('stop');
    await expect(webhook.post('hello', stop.signal)).rejects.toThrow('stop');
    expect(hook.posts).toHaveLength(1);
  });
});
