/** The events that an operator wants notices of, and how settings spell them. */
import { NO_WEB_ADDRESS, webAddressOf } from './address-settings.ts';
import { didYouMean } from './did-you-mean.ts';
import type { ParsedSetting } from './setting.ts';

/** Events that last for some time. Chandler sends a notice when one begins, and when it is over. */
export const STATES = [
  'key-refused',
  'upstream-down',
  'database-down',
  'database-locked',
  'stuck',
  'behind',
  'disk',
  'lake',
] as const;
export type StateEvent = (typeof STATES)[number];

export const NOTICE_EVENTS = [
  ...STATES,
  'quota',
  'history-limit',
  'revisions',
  'quarantine',
  'backfill-done',
  'backfill-failed',
] as const;
export type NoticeEvent = (typeof NOTICE_EVENTS)[number];

export type Notify = {
  /** Secret: anyone who knows the address can post there. */
  readonly url: string;
  readonly events: readonly NoticeEvent[];
  /** A notice is sent when the upstream changes more final candles than this within 24 hours. */
  readonly revisionsADay: number;
};

export const DEFAULT_STUCK_AFTER_MS = 3_600_000;
export const DEFAULT_REVISIONS_A_DAY = 100;

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
/** A retry alone takes minutes. */
const LEAST_STUCK_MS = 5 * UNIT_MS.m;
const MOST_STUCK_MS = 30 * UNIT_MS.d;
const MOST_REVISIONS = 1_000_000;

/** Parses the address of a webhook or of a heartbeat monitor. The text of a problem never contains the address. */
export function parseSecretUrl(text: string): ParsedSetting<string> {
  const url = webAddressOf(text);
  if (url === null) return { problem: NO_WEB_ADDRESS };
  if (url.username !== '' || url.password !== '') {
    return { problem: 'which contains a user name or password; leave them out' };
  }
  if (url.hash !== '') return { problem: 'which must have no #' };
  return { ok: url.href };
}

/** Parses `quota,stuck`, or `all`. */
export function parseNoticeEvents(text: string): ParsedSetting<readonly NoticeEvent[]> {
  const words = text.split(/[\s,]+/).filter((word) => word !== '');
  if (words.length === 1 && words[0] === 'all') return { ok: NOTICE_EVENTS };
  const wrong = words.find((word) => !(NOTICE_EVENTS as readonly string[]).includes(word));
  if (wrong === undefined && words.length > 0) return { ok: NOTICE_EVENTS.filter((event) => words.includes(event)) };
  const which = words.length > 1 && wrong !== undefined ? `which has ${JSON.stringify(wrong)}; ` : '';
  return {
    problem: `${which}it must be all, or some of ${NOTICE_EVENTS.join(', ')} with commas${didYouMean(wrong ?? '', NOTICE_EVENTS)}`,
  };
}

/** Parses `30m`, `2h`, `1d` to milliseconds. */
export function parseStuckAfter(text: string): ParsedSetting<number> {
  const [, count, unit] = /^(\d{1,5})([mhd])$/.exec(text) ?? [];
  const ms = count === undefined ? Number.NaN : Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
  if (ms >= LEAST_STUCK_MS && ms <= MOST_STUCK_MS) return { ok: ms };
  return { problem: 'it must be minutes, hours or days like 30m, 2h or 1d, from 5m to 30d' };
}

export function parseRevisionsADay(text: string): ParsedSetting<number> {
  const value = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN;
  if (value <= MOST_REVISIONS) return { ok: value };
  return { problem: `it must be a whole number of candles in 24 hours, from 0 to ${MOST_REVISIONS}` };
}
