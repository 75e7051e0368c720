/** What a response means: status, headers and body in, one of the outcomes out (upstream-api.md, section 2). */
import type { Instant } from '../clock.ts';
import { parseHistoryLimit, saysUnknownId } from '../contract/answer/errors.ts';
import { readRedirect } from './address.ts';
import type { Outcome } from './answer.ts';
import type { Body } from './body.ts';
import { parseJson } from './json.ts';
import { describeNetworkError } from './network-error.ts';
import { retryAfterMs } from './retry-after.ts';

export type Received = {
  readonly asked: URL;
  readonly status: number;
  readonly header: (name: string) => string | null;
  readonly body: Body;
  /** When the response was complete. */
  readonly now: Instant;
};

/** What a response of the REST interface means. */
export function classify(received: Received): Outcome {
  const { status, header, asked, now, body } = received;
  if (status === 200) return classifyFound(received);
  // A body that did not arrive changes what a status means only where the text decides.
  const text = errorText(received);
  const message = `${asked.host} answered ${status}${text === '' ? '' : `: ${text}`}`;
  const wait = retryAfterMs(header, now);
  if (status >= 300 && status < 400) return readRedirect(status, header('location'), asked);
  if (status < 300 || status >= 600) return malformed(message, isHtml(received));
  const byStatus = outcomeOfStatus(status, message, wait);
  if (status === 429 || byStatus.kind === 'unavailable') return byStatus;
  if (body.kind === 'cut') {
    return { kind: 'unavailable', retryAfterMs: wait, message: describeNetworkError(body.error, asked.host).message };
  }
  if (status === 400 || status === 402) return historyLimitRefusal(text, message) ?? byStatus;
  // A gateway that knows no route writes JSON as well: only upstream's own words are about an id.
  const isUnknownId = status === 404 && saysUnknownId(jsonError(body) ?? '');
  return isUnknownId ? { kind: 'refused', reason: 'unknown id', message } : byStatus;
}

/** What a status from 400 to 599 means by itself. History limits and unknown ids are told by the text. */
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

/** Null when the text names no history limit. */
export function historyLimitRefusal(text: string, message: string): Outcome | null {
  const limit = parseHistoryLimit(text);
  return limit && { kind: 'refused', reason: 'history limit', notBefore: limit.notBefore, message };
}

export function malformed(message: string, astray = false): Outcome {
  return { kind: 'malformed', message, astray };
}

function classifyFound(received: Received): Outcome {
  const { body, asked } = received;
  const not = (what: string): Outcome => malformed(`${asked.host} answered ${what}`, isHtml(received));
  if (body.kind === 'cut') {
    return { kind: 'unavailable', retryAfterMs: null, message: describeNetworkError(body.error, asked.host).message };
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

/** The text of a JSON error body; null when the body is no such thing. */
function jsonError(body: Body): string | null {
  return body.kind === 'whole' ? messageOf(parseJson(body.bytes)) : null;
}

/** `{"error": "…"}` as the upstream has it, and the two variants other gateways write. */
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

/** Texts from outside end up in logs and tables: one line, no control characters, bounded. */
export function oneLine(text: string, maxLength: number): string {
  const line = text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
  return line.length > maxLength ? `${line.slice(0, maxLength - 1)}…` : line;
}
