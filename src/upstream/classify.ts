/** What an answer means: status, headers and body in, one of the five outcomes out (upstream-api.md, section 2). */
import type { Instant } from '../clock.ts';
import { parseWall, saysUnknownId } from '../contract/answer/errors.ts';
import type { Answer, Exchange } from './answer.ts';
import type { Body } from './body.ts';
import { parseJson } from './json.ts';
import { describeNetworkError } from './network-error.ts';
import { readRedirect } from './redirect.ts';
import { retryAfterMs } from './retry-after.ts';

type WithoutExchange<T> = T extends { readonly exchange: Exchange } ? Omit<T, 'exchange'> : never;
export type Outcome = WithoutExchange<Answer>;

export type Received = {
  readonly asked: URL;
  readonly status: number;
  readonly header: (name: string) => string | null;
  readonly body: Body;
  /** When the answer was complete. */
  readonly now: Instant;
};

export function classify(received: Received): Outcome {
  const { status, header, asked, now } = received;
  if (status === 200) return classifyFound(received);
  // A body that did not arrive changes what a status means only where the text decides.
  const text = errorText(received);
  const message = `${asked.host} answered ${status}${text === '' ? '' : `: ${text}`}`;
  const wait = retryAfterMs(header, now);
  if (status >= 300 && status < 400) {
    const redirect = readRedirect(status, header('location'), asked);
    if (redirect.kind === 'moved') return redirect;
    return { kind: 'malformed', message: redirect.message, astray: redirect.kind === 'astray' };
  }
  if (status === 429) return { kind: 'limited', by: 'pace', retryAfterMs: wait, message };
  if (status === 408 || status === 425 || (status >= 500 && status < 600)) {
    return { kind: 'unavailable', retryAfterMs: wait, message };
  }
  if (status < 400 || status >= 600) return { kind: 'malformed', message, astray: isHtml(received) };
  if (received.body.kind === 'cut') {
    const cut = describeNetworkError(received.body.error, asked.host);
    return { kind: 'unavailable', retryAfterMs: wait, message: cut.message };
  }
  if (status === 400 || status === 402) {
    const wall = parseWall(text);
    if (wall) return { kind: 'refused', reason: 'wall', notBefore: wall.notBefore, message };
    if (status === 402) return { kind: 'limited', by: 'spent', retryAfterMs: wait, message };
  }
  if (status === 401 || status === 403) return { kind: 'refused', reason: 'forbidden', message };
  if (status === 404) {
    // A gateway that knows no route writes JSON as well: only upstream's own words are about an id.
    const error = jsonError(received.body);
    return {
      kind: 'refused',
      reason: error !== null && saysUnknownId(error) ? 'unknown id' : 'unknown route',
      message,
    };
  }
  return { kind: 'refused', reason: 'bad request', message };
}

function classifyFound(received: Received): Outcome {
  const { body, asked } = received;
  const malformed = (what: string): Outcome => ({
    kind: 'malformed',
    message: `${asked.host} answered ${what}`,
    astray: isHtml(received),
  });
  if (body.kind === 'cut') {
    return { kind: 'unavailable', retryAfterMs: null, message: describeNetworkError(body.error, asked.host).message };
  }
  if (body.kind === 'too large') return malformed(`with more than the ${body.bytes} bytes that are read`);
  if (body.kind === 'garbled') return malformed(`with a body that is ${body.message}`);
  if (isHtml(received)) return malformed('with a web page where JSON was expected: the base URL may be wrong');
  if (body.bytes.length === 0) return malformed('with an empty body');
  const parsed = parseJson(body.bytes);
  if (parsed === undefined) return malformed(`with broken JSON: ${oneLine(body.bytes.toString('utf8', 0, 400), 80)}`);
  if (parsed === null || typeof parsed !== 'object') return malformed('with JSON that is neither an object nor a list');
  const error = messageOf(parsed);
  if (error !== null && Object.keys(parsed).length === 1) return malformed(`200 with an error in it: ${error}`);
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
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return null;
  const { error, message } = value as { error?: unknown; message?: unknown };
  const text =
    typeof error === 'object' && error !== null ? (error as { message?: unknown }).message : (error ?? message);
  return typeof text === 'string' ? oneLine(text, 300) : null;
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
