/** Classifies a response: from status, headers and body to one of the outcomes (upstream-api.md, section 2). */
import type { Instant } from '../clock.ts';
import { isUnknownIdError, parseHistoryLimit } from '../contract/answer/errors.ts';
import { readRedirect } from './address.ts';
import type { Outcome } from './answer.ts';
import type { Body } from './body.ts';
import { parseJson } from './json.ts';
import { describeNetworkError } from './network-error.ts';
import { retryAfterMs } from './retry-after.ts';

export type Received = {
  readonly requestUrl: URL;
  readonly status: number;
  readonly header: (name: string) => string | null;
  readonly body: Body;
  /** When the response was complete. */
  readonly now: Instant;
};

/** The outcome of a response of the REST interface. */
export function classify(received: Received): Outcome {
  const { status, header, requestUrl, now, body } = received;
  if (status === 200) return classifyFound(received);
  // If the body did not arrive, this matters only for statuses whose text decides.
  const text = errorText(received);
  const message = `${requestUrl.host} answered ${status}${text === '' ? '' : `: ${text}`}`;
  const wait = retryAfterMs(header, now);
  if (status >= 300 && status < 400) return readRedirect(status, header('location'), requestUrl);
  if (status < 300 || status >= 600) return malformed(message, isHtml(received));
  const byStatus = outcomeOfStatus(status, message, wait);
  if (status === 429 || byStatus.kind === 'unavailable') return byStatus;
  if (body.kind === 'cut') {
    return {
      kind: 'unavailable',
      retryAfterMs: wait,
      message: describeNetworkError(body.error, requestUrl.host).message,
    };
  }
  if (status === 400 || status === 402) return historyLimitRefusal(text, message) ?? byStatus;
  // A gateway without such a route writes JSON, too. Only the upstream's own text is about an id.
  const isUnknownId = status === 404 && isUnknownIdError(jsonError(body) ?? '');
  return isUnknownId ? { kind: 'refused', reason: 'unknown id', message } : byStatus;
}

/** The outcome of a status from 400 to 599 alone. Only the text shows history limits and unknown ids. */
export function outcomeOfStatus(status: number, message: string, retryAfterMs: number | null): Outcome {
  if (status === 408 || status === 425 || status >= 500) return { kind: 'unavailable', retryAfterMs, message };
  switch (status) {
    case 401:
    case 403:
      return { kind: 'refused', reason: 'forbidden', message };
    case 402:
      return { kind: 'limited', by: 'quota', retryAfterMs, message };
    case 404:
      return { kind: 'refused', reason: 'unknown route', message };
    case 429:
      return { kind: 'limited', by: 'rate', retryAfterMs, message };
    default:
      return { kind: 'refused', reason: 'bad request', message };
  }
}

/** The refusal for the history limit in the text; null when the text names none. */
export function historyLimitRefusal(text: string, message: string): Outcome | null {
  const limit = parseHistoryLimit(text);
  return limit && { kind: 'refused', reason: 'history limit', notBefore: limit.notBefore, message };
}

export function malformed(message: string, astray = false): Outcome {
  return { kind: 'malformed', message, astray };
}

function classifyFound(received: Received): Outcome {
  const { body, requestUrl } = received;
  const not = (what: string): Outcome => malformed(`${requestUrl.host} answered ${what}`, isHtml(received));
  if (body.kind === 'cut') {
    return {
      kind: 'unavailable',
      retryAfterMs: null,
      message: describeNetworkError(body.error, requestUrl.host).message,
    };
  }
  if (body.kind === 'too large') return not(`with more than the allowed ${body.bytes} bytes`);
  if (body.kind === 'garbled') return not(`with a body that is ${body.message}`);
  if (isHtml(received)) return not('with a web page where JSON was expected: the base URL may be wrong');
  if (body.bytes.length === 0) return not('with an empty body');
  const parsed = parseJson(body.bytes);
  if (parsed === undefined) return not(`with broken JSON: ${oneLine(body.bytes.toString('utf8', 0, 400), 80)}`);
  if (parsed === null || typeof parsed !== 'object') return not('with JSON that is neither an object nor a list');
  const error = messageOf(parsed);
  if (error !== null && Object.keys(parsed).length === 1) return not(`200 with an error in it: ${error}`);
  return { kind: 'answered', body: parsed };
}

function errorText({ body, header }: Received): string {
  if (body.kind !== 'whole') return '';
  const error = jsonError(body);
  if (error !== null) return error;
  if (isHtml({ body, header })) return 'a web page';
  return oneLine(body.bytes.toString('utf8', 0, 1000), 200);
}

/** The text of a JSON error body; null when the body is not one. */
function jsonError(body: Body): string | null {
  return body.kind === 'whole' ? messageOf(parseJson(body.bytes)) : null;
}

/** The text of `{"error": "…"}`, which the upstream writes, and of two variants that gateways write. */
function messageOf(value: unknown): string | null {
  if (!isObject(value)) return null;
  const { error, message } = value;
  const text = isObject(error) ? error.message : (error ?? message);
  return typeof text === 'string' ? oneLine(text, 300) : null;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isHtml({ body, header }: Pick<Received, 'body' | 'header'>): boolean {
  if (/\bx?html\b/i.test(header('content-type') ?? '')) return true;
  return body.kind === 'whole' && /^\s*</.test(body.bytes.toString('utf8', 0, 64).replace(/^\uFEFF/, ''));
}

/** Makes a text from outside fit for logs and tables: one line, no control characters, at most `maxLength`. */
export function oneLine(text: string, maxLength: number): string {
  const line = text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
  return line.length > maxLength ? `${line.slice(0, maxLength - 1)}…` : line;
}
