/**
 * Sends to the operator's addresses: a text to a webhook in the format of Slack and Mattermost (`{"text": …}` by POST), or a heartbeat to a
 * monitor (GET). The address is secret.
 */
import { systemClock } from '../../clock.ts';
import { linkAbort } from '../../core/concurrency/linked-abort.ts';
import { withDeadline } from '../../core/concurrency/unless-aborted.ts';
import { createMask } from '../../log.ts';
import { createHttpAgent } from '../../upstream/agent.ts';
import { readRawBody } from '../../upstream/body.ts';
import { describeNetworkError } from '../../upstream/network-error.ts';
import { retryAfterMs } from '../../upstream/retry-after.ts';

export type Delivery =
  | { readonly kind: 'taken' }
  /** A later attempt may succeed: an outage, a limit, a hook that was switched off. `retryAfterMs` is null when the response does not say when. */
  | { readonly kind: 'failed'; readonly message: string; readonly retryAfterMs: number | null }
  /** The webhook will never accept this text. */
  | { readonly kind: 'refused'; readonly message: string };

export type Webhook = {
  /** The host, which is not secret. */
  readonly host: string;
  /** Rejects only with the signal's reason. */
  post(text: string, signal?: AbortSignal): Promise<Delivery>;
  /** Rejects only with the signal's reason. */
  get(signal?: AbortSignal): Promise<Delivery>;
  close(): Promise<void>;
};

/** Limit until the response begins, and again until it ends. It is long, because a receiver that answers later gets the message a second time. */
const DEADLINE_MS = 60_000;
const CONNECT_MS = 5_000;
/** Enough of a response for the line that describes the problem. */
const MOST_BYTES = 16 * 1024;
const LONGEST_REASON = 200;
/** Some services refuse longer texts. */
const LONGEST_TEXT = 3_500;
/** Statuses that reject the text itself. */
const ABOUT_THE_TEXT: ReadonlySet<number> = new Set([400, 413, 422]);

/** `setting`: the variable with the address. */
export function createWebhook(
  address: string,
  { deadlineMs = DEADLINE_MS, setting = 'CHANDLER_WEBHOOK_URL' }: WebhookOptions = {},
): Webhook {
  const url = new URL(address);
  const withoutAddress = createMask([url.href, url.pathname + url.search].filter((text) => text.length >= 12));
  const agent = createHttpAgent({
    connect: { timeout: Math.min(CONNECT_MS, deadlineMs) },
    headersTimeout: deadlineMs,
    bodyTimeout: deadlineMs,
    // Messages are rare: the other side would have closed an idle connection before the next one.
    pipelining: 0,
  });
  const send = async (content: Content, signal?: AbortSignal): Promise<Delivery> => {
    signal?.throwIfAborted();
    const { controller: stop, unlink } = linkAbort(signal);
    const late = new Error(`${url.host} did not answer within ${deadlineMs / 1000} s`);
    // Undici's own timers notice only silence. This deadline also ends a response that arrives byte by byte.
    const within = <T>(work: () => Promise<T>) => withDeadline(systemClock, { ms: deadlineMs, late, stop }, work);
    try {
      const response = await within(() =>
        agent.request({
          origin: url.origin,
          path: url.pathname + url.search,
          ...content,
          headers: { ...content.headers, accept: '*/*', 'user-agent': 'chandler' },
          signal: stop.signal,
        }),
      );
      const body = await within(() => readRawBody(response.body, MOST_BYTES)).catch(() => null);
      const header = (name: string) => [response.headers[name]].flat().join(', ') || null;
      const reason = body?.kind === 'raw' ? withoutAddress(firstLine(body.bytes.toString('utf8'))) : '';
      return judge({ host: url.host, setting }, response.statusCode, header, reason);
    } catch (error) {
      signal?.throwIfAborted();
      const message = error === late ? late.message : withoutAddress(describeNetworkError(error, url.host).message);
      return { kind: 'failed', message, retryAfterMs: null };
    } finally {
      unlink();
    }
  };
  return {
    host: url.host,
    post: (text, signal) => {
      const headers = { 'content-type': 'application/json; charset=utf-8' };
      return send({ method: 'POST', headers, body: JSON.stringify({ text: forSlack(text) }) }, signal);
    },
    get: (signal) => send({ method: 'GET', headers: {} }, signal),
    close: () => agent.destroy(),
  };
}

type Content = {
  readonly method: 'GET' | 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
};

type WebhookOptions = { readonly deadlineMs?: number; readonly setting?: string };

function judge(
  { host, setting }: { readonly host: string; readonly setting: string },
  status: number,
  header: (name: string) => string | null,
  reason: string,
): Delivery {
  if (status >= 200 && status < 300) return { kind: 'taken' };
  // The operator has allowed messages to this address only.
  if (status >= 300 && status < 400) {
    const message = `${host} answered ${status}: it redirects, which is not followed; set ${setting} to the new address`;
    return { kind: 'failed', message, retryAfterMs: null };
  }
  const message = `${host} answered ${status}${reason === '' ? '' : ` (${reason})`}`;
  if (ABOUT_THE_TEXT.has(status)) return { kind: 'refused', message };
  return { kind: 'failed', message, retryAfterMs: retryAfterMs(header, systemClock.now()) };
}

/** The first line of the webhook's error text. Empty for a web page. */
function firstLine(text: string): string {
  const line = text.trim().split('\n')[0]!.trim();
  if (line.startsWith('<')) return '';
  return line.length > LONGEST_REASON ? `${line.slice(0, LONGEST_REASON)}…` : line;
}

/** Escapes the three characters that are markup to Slack. */
function forSlack(text: string): string {
  const cut = text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text;
  return cut.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
