/** Sends one HTTP request and returns its outcome. Time and size are bounded, and no message contains the key. */
import { type Clock, type Instant, systemClock } from '../clock.ts';
import { SIMULATOR_HEADER } from '../contract/interface/paths.ts';
import { linkAbort } from '../core/concurrency/linked-abort.ts';
import { withDeadline } from '../core/concurrency/unless-aborted.ts';
import type { Answer, AuthScheme, Exchange, NoContact, Outcome } from './answer.ts';
import { type AnswerTime, createAnswerClock } from './answer-time.ts';
import { type Body, decompress, type RawBody, readRawBody } from './body.ts';
import type { Received } from './classify.ts';
import { createKeyMask } from './key-mask.ts';
import { describeNetworkError } from './network-error.ts';
import { createFetchWire, createSocketWire, type FetchFunction, type Timeouts, type WireResponse } from './wire.ts';

export type SenderOptions = {
  /** Null when requests are sent without a key. */
  readonly key: string | null;
  readonly clock: Clock;
  /** Replaces the network. Its timeouts use `clock`; timeouts of real sockets use the machine's time. */
  readonly fetch?: FetchFunction;
  readonly timeouts?: Partial<Timeouts>;
  /** The most bytes of one body, compressed and decompressed. */
  readonly maxBytes?: number;
};

type Sending = {
  readonly url: URL;
  /** The body of a POST, as JSON; without it, the request is a GET. */
  readonly post?: string;
  readonly scheme: AuthScheme | undefined;
  readonly signal: AbortSignal | undefined;
};

type Sender = {
  /** Sends exactly one request; `meaning` classifies a received response. Never throws because of the network or the server. */
  send(sending: Sending, meaning: (received: Received) => Outcome): Promise<Answer>;
  close(): Promise<void>;
};

const DEFAULT_TIMEOUTS: Timeouts = { connectMs: 10_000, headersMs: 30_000, bodyMs: 60_000 };
/** The largest response has all tickers: some 37 MB. */
const DEFAULT_MAX_BYTES = 64 * 1024 * 1024;
/** Undici's codes for these timeouts, so that one table describes both its timers and ours. */
const HEADERS_TIMEOUT = 'UND_ERR_HEADERS_TIMEOUT';
const BODY_TIMEOUT = 'UND_ERR_BODY_TIMEOUT';

/** @throws TypeError when the key is not usable (the message never contains it). */
export function createSender(options: SenderOptions): Sender {
  const { key, clock, maxBytes = DEFAULT_MAX_BYTES } = options;
  if (key !== null && !/^[\x21-\x7e]+$/.test(key)) {
    throw new TypeError('the API key may only have visible ASCII characters, without spaces');
  }
  const mask = createKeyMask(key);
  const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts };
  const wire = options.fetch ? createFetchWire(options.fetch) : createSocketWire(timeouts);
  const timer = options.fetch ? clock : systemClock;
  const timeOf = createAnswerClock();

  async function send(
    { url, post, scheme, signal }: Sending,
    meaning: (received: Received) => Outcome,
  ): Promise<Answer> {
    signal?.throwIfAborted();
    const { controller: stop, unlink } = linkAbort(signal);
    // Undici's own timers end a silent stage. This also ends a stage in which a little data keeps arriving, and a `fetch` that ignores its signal.
    const within = <T>(ms: number, code: string, work: () => Promise<T>) =>
      withDeadline(timer, { ms, late: Object.assign(new Error('too slow'), { code }), stop }, work);
    const sentAt = clock.now();
    let head: WireResponse | null = null;
    let body: Body | null = null;
    let outcome: Outcome;
    let noContact: NoContact | null = null;
    try {
      const request = { url, headers: headersFor(key, scheme, post), post, signal: stop.signal };
      const response = await within(timeouts.connectMs + timeouts.headersMs, HEADERS_TIMEOUT, () => wire.send(request));
      head = response;
      const raw = await within(timeouts.bodyMs, BODY_TIMEOUT, () => readRawBody(response.body, maxBytes)).catch(
        (error): RawBody => ({ kind: 'cut', bytes: 0, error }),
      );
      body = await decompress(raw, head.header('content-encoding'), maxBytes);
      // The key is masked before the body is parsed, because a text that is cut later may end within the key.
      if (body.kind === 'whole') body = { ...body, bytes: mask.bytes(body.bytes) };
      outcome = meaning({ requestUrl: url, status: head.status, header: head.header, body, now: clock.now() });
    } catch (error) {
      const failure = describeNetworkError(error, url.host);
      const { message } = failure;
      noContact = failure.noContact;
      outcome =
        noContact === 'not HTTP'
          ? { kind: 'malformed', message, astray: true }
          : { kind: 'unavailable', retryAfterMs: null, message };
    } finally {
      unlink();
    }
    signal?.throwIfAborted();
    const now = clock.now();
    const time = timeOf({ sentAt, now }, (name) => head?.header(name) ?? null);
    return {
      ...cleanTexts(outcome, mask.text),
      exchange: { ...exchangeOf(sentAt, now, head, body, mask.text), ...time, noContact },
    };
  }

  return { send, close: () => wire.close() };
}

function headersFor(key: string | null, scheme: AuthScheme = 'bearer', post?: string): Record<string, string> {
  return {
    accept: 'application/json',
    'accept-encoding': 'gzip',
    'user-agent': 'chandler',
    ...(post === undefined ? {} : { 'content-type': 'application/json' }),
    ...(key === null ? {} : { authorization: scheme === 'bare' ? key : `Bearer ${key}` }),
  };
}

function exchangeOf(
  sentAt: Instant,
  now: Instant,
  head: WireResponse | null,
  body: Body | null,
  withoutKey: (text: string) => string,
): Omit<Exchange, 'noContact' | keyof AnswerTime> {
  const simulator = head?.header(SIMULATOR_HEADER) ?? null;
  return {
    sentAt,
    durationMs: Math.max(0, now - sentAt),
    status: head?.status ?? null,
    bytes: body === null ? 0 : body.kind === 'whole' ? body.bytes.length : body.bytes,
    bodySha256: body?.kind === 'whole' ? body.sha256 : null,
    simulator: simulator === null ? null : withoutKey(simulator),
  };
}

/** Removes the key from the texts: if a server repeats it, it must not get into our messages, logs and tables. */
function cleanTexts(outcome: Outcome, withoutKey: (text: string) => string): Outcome {
  if (outcome.kind === 'moved') return { ...outcome, shown: withoutKey(outcome.shown) };
  return 'message' in outcome ? { ...outcome, message: withoutKey(outcome.message) } : outcome;
}
