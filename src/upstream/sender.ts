/** Sends one HTTP request and tells what came of it: within its time, within its size, and with the key in nobody's texts. */
import { type After, after, afterOn, type Clock, type Instant } from '../clock.ts';
import { SIMULATOR_HEADER } from '../contract/interface/paths.ts';
import { createMask } from '../log.ts';
import type { Answer, AuthScheme, Exchange, NoContact } from './answer.ts';
import { type Body, type Packed, unpack } from './body.ts';
import type { Outcome, Received } from './classify.ts';
import { describeNetworkError } from './network-error.ts';
import { createFetchWire, createSocketWire, type FetchFunction, type Timeouts, type WireAnswer } from './wire.ts';

export type SenderOptions = {
  /** Null: anonymous. */
  readonly key: string | null;
  readonly clock: Clock;
  /** Stands in for the network. Its timeouts run on `clock`; those of real sockets run on the machine's time. */
  readonly fetch?: FetchFunction;
  readonly timeouts?: Partial<Timeouts>;
  /** Bound of one body, packed and unpacked. */
  readonly maxBytes?: number;
};

export type Sending = {
  readonly url: URL;
  /** JSON. */
  readonly post?: string;
  readonly scheme: AuthScheme | undefined;
  readonly signal: AbortSignal | undefined;
};

export type Sender = {
  /** Exactly one request; `meaning` says what a received answer means. Never throws for what the network or the server did. */
  send(sending: Sending, meaning: (received: Received) => Outcome): Promise<Answer>;
  close(): Promise<void>;
};

const DEFAULT_TIMEOUTS: Timeouts = { connectMs: 10_000, headersMs: 30_000, bodyMs: 60_000 };
/** The whole catalogue is 53,000 coins in some 8 MB, and is the largest answer there is. */
const DEFAULT_MAX_BYTES = 64 * 1024 * 1024;
/** The names undici gives these two, so that one table describes both its timers and ours. */
const HEADERS_TIMEOUT = 'UND_ERR_HEADERS_TIMEOUT';
const BODY_TIMEOUT = 'UND_ERR_BODY_TIMEOUT';

/** @throws TypeError when the key is not usable (the message never repeats it). */
export function createSender(options: SenderOptions): Sender {
  const { key, clock, maxBytes = DEFAULT_MAX_BYTES } = options;
  if (key !== null && !/^[\x21-\x7e]+$/.test(key)) {
    throw new TypeError('the API key may only have visible ASCII characters, without spaces');
  }
  const withoutKey = createMask(key === null ? [] : [key], '[key]');
  const timeouts = { ...DEFAULT_TIMEOUTS, ...options.timeouts };
  const wire = options.fetch ? createFetchWire(options.fetch, maxBytes) : createSocketWire(timeouts, maxBytes);
  const later = options.fetch ? afterOn(clock) : after;

  async function send(
    { url, post, scheme, signal }: Sending,
    meaning: (received: Received) => Outcome,
  ): Promise<Answer> {
    signal?.throwIfAborted();
    const stop = new AbortController();
    const onAbort = () => stop.abort(signal?.reason);
    signal?.addEventListener('abort', onAbort, { once: true });
    const within = <T>(ms: number, code: string, work: () => Promise<T>) => withDeadline(later, ms, code, stop, work);
    const sentAt = clock.now();
    let head: WireAnswer | null = null;
    let body: Body | null = null;
    let outcome: Outcome;
    let noContact: NoContact | null = null;
    try {
      const request = { url, headers: headersFor(key, scheme, post), post, signal: stop.signal };
      head = await within(timeouts.connectMs + timeouts.headersMs, HEADERS_TIMEOUT, () => wire.send(request));
      const encoding = head.header('content-encoding');
      const read = await within(timeouts.bodyMs, BODY_TIMEOUT, head.body).catch(
        (error): Packed => ({ kind: 'cut', bytes: 0, error }),
      );
      body = await unpack(read, encoding, maxBytes);
      if (key !== null) body = cleanBody(body, key, withoutKey);
      outcome = meaning({ asked: url, status: head.status, header: head.header, body, now: clock.now() });
    } catch (error) {
      const failure = describeNetworkError(error, url.host);
      const { message } = failure;
      noContact = failure.noContact;
      outcome =
        noContact === 'not HTTP'
          ? { kind: 'malformed', message, astray: true }
          : { kind: 'unavailable', retryAfterMs: null, message };
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
    signal?.throwIfAborted();
    return {
      ...cleanTexts(outcome, withoutKey),
      exchange: { ...exchangeOf(sentAt, clock.now(), head, body), noContact },
    };
  }

  return { send, close: () => wire.close() };
}

/** Undici's own timers see silence; this also ends a stage that drips for ever, or a `fetch` that ignores its signal. */
function withDeadline<T>(later: After, ms: number, code: string, stop: AbortController, work: () => Promise<T>) {
  return new Promise<T>((resolve, reject) => {
    stop.signal.throwIfAborted();
    const callOff = later(ms, () => stop.abort(Object.assign(new Error('too slow'), { code })));
    // What ignores the signal may never settle: nothing waits for it.
    const onAbort = () => {
      callOff();
      reject(stop.signal.reason);
    };
    stop.signal.addEventListener('abort', onAbort, { once: true });
    const settled =
      <V>(settle: (value: V) => void) =>
      (value: V) => {
        callOff();
        stop.signal.removeEventListener('abort', onAbort);
        settle(value);
      };
    work().then(settled(resolve), settled(reject));
  });
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
  head: WireAnswer | null,
  body: Body | null,
): Omit<Exchange, 'noContact'> {
  const date = Date.parse(head?.header('date') ?? '');
  const age = Number(head?.header('age') ?? 0);
  const ageMs = Number.isFinite(age) && age > 0 ? age * 1000 : 0;
  return {
    sentAt,
    durationMs: Math.max(0, now - sentAt),
    status: head?.status ?? null,
    bytes: body === null ? 0 : body.kind === 'whole' ? body.bytes.length : body.bytes,
    bodySha256: body?.kind === 'whole' ? body.sha256 : null,
    asOf: (Number.isNaN(date) ? sentAt : Math.min(sentAt, date)) - ageMs,
    ageMs,
    date: Number.isNaN(date) ? null : date - ageMs,
    latest: Number.isNaN(date) ? now : Math.max(now, date),
    simulator: head?.header(SIMULATOR_HEADER) ?? null,
  };
}

/** A server that echoes the key must not get it into our messages, logs and tables. */
function cleanTexts(outcome: Outcome, withoutKey: (text: string) => string): Outcome {
  if (outcome.kind === 'moved') return { ...outcome, shown: withoutKey(outcome.shown) };
  return 'message' in outcome ? { ...outcome, message: withoutKey(outcome.message) } : outcome;
}

/** Before it is read, because a text that is cut short may end within the key. What could be a number stays: it may be one. */
function cleanBody(body: Body, key: string, withoutKey: (text: string) => string): Body {
  if (body.kind !== 'whole' || key.length < 8 || /^[\d.eE+-]+$/.test(key)) return body;
  const forms = [key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1)];
  if (!forms.some((form) => body.bytes.includes(form))) return body;
  return { ...body, bytes: Buffer.from(withoutKey(body.bytes.toString('utf8'))) };
}
