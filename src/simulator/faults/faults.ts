/** Injects faults into the responses of a handler. Seed, address and attempt choose them, so every run has the same faults. */
import type { Clock, Instant } from '../../clock.ts';
import { historyLimitText, TOO_MANY_REQUESTS } from '../../contract/answer/errors.ts';
import { connectionReset, type Handler, type Peer } from '../../contract/interface/handler.ts';
import { DAY } from '../../core/interval.ts';
import { below, hashText, mix, unit } from '../hash.ts';
import { FAULT_NAMES, type FaultName, type FaultSpec, happensOncePerCandle } from './fault-spec.ts';
import { spoilRows, type WireRow } from './faulty-rows.ts';
import { createLieHistory } from './lie-history.ts';
import { otherRows } from './other-answer.ts';
import { parseRowRequest } from './row-request.ts';

type FaultyParts = {
  readonly spec: FaultSpec;
  readonly clock: Clock;
  /**
   * Returns the handler's response to any request, as of now or of `agoMs` milliseconds ago. The request counts for no caller. Without `send`, the
   * faults that need it do not happen: `stale`, and the lies that are true for another interval, coin or day.
   */
  readonly send?: (request: Request, agoMs: number) => Promise<Response>;
};

type FaultyHandler = Handler & {
  /** How often each fault has happened. */
  readonly injected: () => Partial<Record<FaultName, number>>;
};

/**
 * Every request reaches `handler` first and is counted there, as at the upstream. Then a successful response may be spoilt. A fault that is returned
 * once (`happensOncePerCandle`) is false: the next answer to the same request is true, and no later answer lies about the same candles. `reset`
 * rejects as `fetch` does; `hang` settles only when the request is aborted.
 */
export function withFaults(handler: Handler, { spec, clock, send }: FaultyParts): FaultyHandler {
  const attempts = new Map<number, Attempts>();
  const injected: Partial<Record<FaultName, number>> = {};
  const lies = createLieHistory();

  /** Decides when the request arrives; it only stores the number of attempts. */
  const decide = (address: string): { fault: FaultName | null; roll: number; seen: Attempts } => {
    const key = hashText(spec.seed, address);
    const seen = attempts.get(key) ?? { count: 0, faultyInARow: 0, wasLie: false };
    attempts.set(key, seen);
    const roll = mix(key, ++seen.count);
    const mayFail = seen.faultyInARow < spec.mostInARow && !seen.wasLie;
    const fault = mayFail ? pick(spec, unit(roll)) : null;
    seen.faultyInARow = fault === null ? 0 : seen.faultyInARow + 1;
    seen.wasLie = false;
    return { fault, roll: mix(roll, 0x726f6c6c), seen };
  };

  const none = Object.values(spec.rates).every((rate) => rate === 0);
  const faulty = async (request: Request, peer?: Peer): Promise<Response> => {
    if (none) return handler(request, peer);
    const { fault, roll, seen } = decide(request.method === 'POST' ? await callOf(request) : addressOf(request.url));
    const answer = await handler(request, peer);
    if (fault === null || !answer.ok) return answer;
    const spoilt = await spoil(fault, answer, { request, clock, send, roll });
    if (spoilt === null) return answer;
    if (happensOncePerCandle(fault)) {
      if (!lies.mayLie(request)) return answer;
      seen.wasLie = true;
    }
    injected[fault] = (injected[fault] ?? 0) + 1;
    return spoilt();
  };
  return Object.assign(faulty, { injected: () => ({ ...injected }) });
}

/** The attempts of one address. */
type Attempts = { count: number; faultyInARow: number /** If true, the next answer is true. */; wasLie: boolean };

function pick({ rates }: FaultSpec, at: number): FaultName | null {
  let sum = 0;
  for (const name of FAULT_NAMES) {
    sum += rates[name] ?? 0;
    if (at < sum) return name;
  }
  return null;
}

/** Path and query, because the host must not matter. */
function addressOf(url: string): string {
  const { pathname, search } = new URL(url);
  return pathname + search;
}

/** All calls are posted to one address. So the key includes the call, but not its id. */
async function callOf(request: Request): Promise<string> {
  const posted = await request.clone().text();
  try {
    const { method, params } = JSON.parse(posted) as { readonly method?: unknown; readonly params?: unknown };
    return addressOf(request.url) + JSON.stringify([method, params]);
  } catch {
    return addressOf(request.url) + posted;
  }
}

type Circumstances = { request: Request; roll: number } & Pick<FaultyParts, 'clock' | 'send'>;
type Replacement = {
  readonly status: number;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
};

const tooMany = errorText(TOO_MANY_REQUESTS);
const PAGE = '<html><head><title>502 Bad Gateway</title></head></html>';
/** Responses that replace any true response. */
const REPLACEMENTS: Partial<Record<FaultName, (now: Instant) => Replacement>> = {
  '429': () => ({ status: 429, body: tooMany, headers: { 'Retry-After': '1' } }),
  '429-silent': () => ({ status: 429, body: tooMany }),
  '402-history-limit': (now) => ({ status: 402, body: errorText(historyLimitText(now - DAY, 123_456)) }),
  '402-spent': () => ({ status: 402, body: tooMany }),
  '500': () => ({ status: 500, body: errorText('An unexpected server error has occurred') }),
  '502': () => ({ status: 502, body: PAGE, headers: { 'Content-Type': 'text/html' } }),
};

/** The response to send instead, or null when this fault cannot happen to this response. */
async function spoil(fault: FaultName, answer: Response, c: Circumstances): Promise<(() => Promise<Response>) | null> {
  const replacement = REPLACEMENTS[fault]?.(c.clock.now());
  if (replacement) {
    const { status, body, headers } = replacement;
    const all = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', ...headers };
    return async () => refit(answer, status, body, all);
  }
  switch (fault) {
    case 'reset':
      return async () => {
        throw connectionReset();
      };
    case 'hang':
      return () => hangUntilAborted(c.request.signal);
    case 'truncated': {
      const text = await answer.clone().text();
      return text.length < 3 ? null : async () => refit(answer, 200, text.slice(0, Math.ceil(text.length * 0.6)));
    }
    case 'stale': {
      if (!c.send || !isRowRequest(c.request)) return null;
      const minutes = 2 + Math.floor(unit(c.roll) * 10);
      const old = await c.send(c.request, minutes * 60_000);
      if (!old.ok) return null;
      const text = await old.text();
      return async () => refit(answer, 200, text, { Age: String(minutes * 60) });
    }
    case 'bad-date': {
      const ahead = 1 + below(9, c.roll);
      const date = unit(mix(c.roll, 8)) < 0.5 ? 0 : c.clock.now() + ahead * DAY;
      return withHeaders(answer, { Date: new Date(date).toUTCString() });
    }
    case 'bad-age':
      return withHeaders(answer, { Age: String(TEN_YEARS_S) });
    case 'no-date':
      return withHeaders(answer, { Date: null });
    // Every other fault changes rows of candles or prices.
    default: {
      const spoilt = await spoilAnswer(fault, answer, c);
      return spoilt && (async () => refit(answer, 200, JSON.stringify(spoilt)));
    }
  }
}

const TEN_YEARS_S = 315_360_000;

async function spoilAnswer(fault: FaultName, answer: Response, c: Circumstances): Promise<WireRow[] | null> {
  const rows = isRowRequest(c.request) ? await rowsOf(answer) : null;
  if (rows === null) return null;
  const { request, roll, send } = c;
  const spoilt = spoilRows(fault, rows, { now: c.clock.now(), roll, url: request.url });
  if (spoilt !== null || !send) return spoilt;
  return otherRows(fault, rows, { request, roll, send: (other) => send(other, 0) });
}

function withHeaders(answer: Response, headers: Record<string, string | null>): () => Promise<Response> {
  return async () => refit(answer, 200, await answer.clone().text(), headers);
}

function hangUntilAborted(signal: AbortSignal): Promise<Response> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

function isRowRequest(request: Request): boolean {
  return parseRowRequest(request) !== null;
}

async function rowsOf(answer: Response): Promise<WireRow[] | null> {
  const body = (await answer.clone().json()) as unknown;
  return Array.isArray(body) && body.length > 0 ? (body as WireRow[]) : null;
}

/** The same response with another status, body or headers; a null header is removed. */
function refit(answer: Response, status: number, body: string, headers: Record<string, string | null> = {}): Response {
  const all = new Headers(answer.headers);
  for (const [name, value] of Object.entries(headers)) {
    if (value === null) all.delete(name);
    else all.set(name, value);
  }
  all.delete('Content-Length');
  return new Response(body, { status, headers: all });
}

function errorText(message: string): string {
  return JSON.stringify({ error: message });
}
