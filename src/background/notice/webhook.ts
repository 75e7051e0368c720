/** Sends one text to a webhook as Slack, Mattermost and others take it: `{"text": …}` by POST. The address is secret. */
import { Agent } from 'undici';
import { type Clock, systemClock } from '../../clock.ts';
import { createMask } from '../../log.ts';
import { readBody } from '../../upstream/body.ts';
import { describeNetworkError } from '../../upstream/network-error.ts';
import { retryAfterMs } from '../../upstream/retry-after.ts';

export type Delivery =
  | { readonly kind: 'taken' }
  /** Not now: an outage, a limit, a hook that was switched off. `retryAfterMs` null: nobody said when. */
  | { readonly kind: 'failed'; readonly message: string; readonly retryAfterMs: number | null }
  /** This text is not taken, whenever it is sent. */
  | { readonly kind: 'refused'; readonly message: string };

export type Webhook = {
  /** Its host, which may be shown. */
  readonly host: string;
  /** Never rejects, but with the signal's reason. */
  post(text: string, signal?: AbortSignal): Promise<Delivery>;
  close(): Promise<void>;
};

/** From the first packet to the last of the answer: who takes longer hangs. */
const DEADLINE_MS = 15_000;
const CONNECT_MS = 5_000;
/** What is read of an answer: enough for one that says what is wrong. */
const MOST_BYTES = 16 * 1024;
const LONGEST_REASON = 200;
/** Longer texts are refused by some. */
const LONGEST_TEXT = 3_500;
/** It is the text that they mean. */
const ABOUT_THE_TEXT: ReadonlySet<number> = new Set([400, 413, 422]);

export function createWebhook(
  address: string,
  { deadlineMs = DEADLINE_MS, clock = systemClock }: WebhookOptions = {},
): Webhook {
  const url = new URL(address);
  const withoutAddress = createMask([url.href, url.pathname + url.search].filter((text) => text.length >= 12));
  const agent = new Agent({
    connect: { timeout: Math.min(CONNECT_MS, deadlineMs) },
    headersTimeout: deadlineMs,
    bodyTimeout: deadlineMs,
    // A message now and then: a connection that was kept is one that was closed meanwhile.
    pipelining: 0,
  });
  return {
    host: url.host,
    post: async (text, signal) => {
      signal?.throwIfAborted();
      const over = new AbortController();
      const tooSlow = new AbortController();
      // Its own timers see silence; this sees an answer that drips for ever.
      const late = clock.sleep(deadlineMs, over.signal).then(
        () => tooSlow.abort(),
        () => undefined,
      );
      try {
        const answer = await agent.request({
          origin: url.origin,
          path: url.pathname + url.search,
          method: 'POST',
          headers: { 'content-type': 'application/json; charset=utf-8', accept: '*/*', 'user-agent': 'chandler' },
          body: JSON.stringify({ text: forSlack(text) }),
          signal: signal === undefined ? tooSlow.signal : AbortSignal.any([signal, tooSlow.signal]),
        });
        const body = await readBody(answer.body, null, MOST_BYTES);
        const header = (name: string) => [answer.headers[name]].flat().join(', ') || null;
        const said = body.kind === 'whole' ? withoutAddress(firstLine(body.bytes.toString('utf8'))) : '';
        return judge(url.host, answer.statusCode, header, said, clock);
      } catch (error) {
        signal?.throwIfAborted();
        const message = tooSlow.signal.aborted
          ? `${url.host} did not answer within ${deadlineMs / 1000} s`
          : withoutAddress(describeNetworkError(error, url.host).message);
        return { kind: 'failed', message, retryAfterMs: null };
      } finally {
        over.abort();
        await late;
      }
    },
    close: () => agent.destroy(),
  };
}

export type WebhookOptions = { readonly deadlineMs?: number; readonly clock?: Clock };

function judge(
  host: string,
  status: number,
  header: (name: string) => string | null,
  said: string,
  clock: Clock,
): Delivery {
  if (status >= 200 && status < 300) return { kind: 'taken' };
  // Where it leads nobody has said that our messages may go.
  if (status >= 300 && status < 400) {
    const message = `${host} answered ${status}: it redirects, which is not followed; set CHANDLER_WEBHOOK_URL to where it leads`;
    return { kind: 'failed', message, retryAfterMs: null };
  }
  const message = `${host} answered ${status}${said === '' ? '' : ` (${said})`}`;
  if (ABOUT_THE_TEXT.has(status)) return { kind: 'refused', message };
  return { kind: 'failed', message, retryAfterMs: retryAfterMs(header, clock.now()) };
}

/** Of what a hook says it is wrong; of a web page nothing. */
function firstLine(text: string): string {
  const line = text.trim().split('\n')[0]!.trim();
  if (line.startsWith('<')) return '';
  return line.length > LONGEST_REASON ? `${line.slice(0, LONGEST_REASON)}…` : line;
}

/** Three characters mean something to Slack. */
function forSlack(text: string): string {
  const cut = text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text;
  return cut.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
