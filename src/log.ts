/** The logger: one JSON object per line, or one readable line on a terminal. Secrets are masked. */
import { type DestinationStream, type Logger, pino } from 'pino';

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type Log = Logger;

export type LogOptions = {
  readonly level: LogLevel;
  /** Where lines go; standard error in the program. */
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
  const clean = (line: string) => maskSecrets(maskPasswords(line));
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
