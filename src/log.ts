/** The logger: one JSON object per line, or one readable line on a terminal. Secrets are masked. */
import { type DestinationStream, type Logger, pino } from 'pino';
import type { Clock } from './clock.ts';

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type Log = Logger;

type LogOptions = {
  readonly level: LogLevel;
  /** Receives each line. In the program it writes to standard error. */
  readonly write: (line: string) => void;
  /** One readable line instead of JSON: for a terminal. */
  readonly readable?: boolean;
  /** Texts that must not appear in any line: the API key, passwords. */
  readonly secrets?: readonly string[];
};

/** Fields whose values are never written. Passwords inside addresses are masked as well. */
const SECRET_FIELDS = ['key', 'apiKey', 'password', 'authorization', 'Authorization'];

/** A logger that writes to `write` and nowhere else. */
export function createLog(options: LogOptions): Log {
  const maskSecrets = createMask((options.secrets ?? []).filter((secret) => secret.length >= 4));
  // Inside each text: in the finished line, a quote that ends a password is escaped, and a number may contain a password of digits.
  const inTexts = (_: string, value: unknown) =>
    typeof value === 'string' ? maskSecrets(maskPasswords(value)) : value;
  const clean = (line: string) => `${JSON.stringify(JSON.parse(line, inTexts))}\n`;
  const stream: DestinationStream = {
    write: options.readable ? (line) => options.write(readable(clean(line))) : (line) => options.write(clean(line)),
  };
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`]), censor: '***' },
    },
    stream,
  );
}

/** Replaces each of these texts by `by`, also where it is percent-encoded or JSON-escaped. */
export function createMask(secrets: readonly string[], by = '***'): (text: string) => string {
  const forms = secrets
    .filter((secret) => secret !== '')
    .flatMap((secret) => [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]);
  // The longest first, as one secret may be a part of another.
  const all = [...new Set(forms)].sort((a, b) => b.length - a.length);
  return (text) => all.reduce((clean, secret) => clean.replaceAll(secret, () => by), text);
}

/** `text` with the password of every address in it (`scheme://user:password@host`, `password=…`) replaced by `***`. */
export function maskPasswords(text: string): string {
  return text
    .replace(/([a-z][a-z0-9+.-]*:\/\/[^\s:/@"']*:)[^\s"']*(?=@)/gi, '$1***')
    .replace(/([?&\s](?:password|sslpassword)=)[^&\s"']+/gi, '$1***');
}

type Line = { level?: string; time?: string; msg?: string; err?: { message?: string; stack?: string } };

function readable(json: string): string {
  const { level, time, msg, err, ...rest } = JSON.parse(json) as Line;
  const fields = Object.entries(rest).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  const words = [time?.slice(11, 19), (level ?? '').padEnd(5), msg, ...fields, err?.message && `(${err.message})`];
  const stack = level === 'debug' || level === 'trace' ? err?.stack : undefined;
  return `${words.filter(Boolean).join(' ')}${stack ? `\n${stack}` : ''}\n`;
}

type Failure = {
  readonly level: 'info' | 'warn' | 'error';
  /** What failed, with the same text for all failures of one kind: `chunk`, `a request failed`. */
  readonly message: string;
  /** Why it failed, with the same text for all failures of one outage. */
  readonly cause: string;
  /** Which item failed. */
  readonly name: string;
  /** Fields of the first failure. */
  readonly fields?: Readonly<Record<string, unknown>>;
  readonly error?: unknown;
};

/** Logs failures of which there may be thousands in an outage: the first one of each cause, and then one line a minute with their count. */
export type FailureLog = (failure: Failure) => void;

const COUNTED_MS = 60_000;
/** The parts of a message that differ between failures of the same cause: request ids and times that the upstream inserts, but no status. */
const CHANGING = /\b(?=[\w-]*\d)[\w-]{4,}|\d+(:\d+)+/g;
/** A line lists at most so many names. The count includes all failures. */
const MOST_NAMES = 10;

type Counted = { failures: number; readonly names: Set<string> };

/** When the signal is aborted, counting ends and the last counts are logged. */
export function createFailureLog(log: Log, clock: Clock, signal: AbortSignal): FailureLog {
  const counting = new Map<string, Counted>();
  /** Counts until a minute passes without such a failure. */
  const count = async (key: string, { level, message, cause }: Failure): Promise<void> => {
    while (!signal.aborted) {
      const counted: Counted = { failures: 0, names: new Set() };
      counting.set(key, counted);
      const since = new Date(clock.now()).toISOString();
      await clock.sleep(COUNTED_MS, signal).catch(() => undefined);
      const { failures, names } = counted;
      if (failures === 0) break;
      log[level]({ cause, count: failures, since, names: [...names] }, message);
    }
    counting.delete(key);
  };
  return (failure) => {
    const { level, message, cause, name, fields, error } = failure;
    log.debug({ ...fields, err: error }, message);
    const key = `${level} ${message} ${cause.replace(CHANGING, '#')}`;
    const counted = counting.get(key);
    if (counted === undefined) {
      log[level]({ ...fields, cause }, message);
      void count(key, failure);
      return;
    }
    counted.failures++;
    if (counted.names.size < MOST_NAMES) counted.names.add(name);
  };
}
