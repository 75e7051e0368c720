/** The arguments of `chandler keys` as people type them. */
import type { Instant } from '../../clock.ts';
import { formatInstant } from '../../core/format.ts';
import { UsageError } from '../shell/exit.ts';
import { parseDuration } from './duration.ts';
import { parseTime } from './time.ts';

const LONGEST_NAME = 100;

/** @throws UsageError when it is empty, too long, or more than one line. */
export function parseKeyName(text: string): string {
  const name = text.trim();
  if (name !== '' && name.length <= LONGEST_NAME && !/\p{Cc}/u.test(name)) return name;
  throw new UsageError(`It must be one line of 1 to ${LONGEST_NAME} characters.`);
}

/** The first part of a key. When the whole key was pasted, its secret part is dropped and never shown. */
export function parseKeyPrefix(text: string): string {
  const match = /^(chandler_[0-9A-Za-z]{8})(_[0-9A-Za-z]*)?$/.exec(text.trim());
  if (match) return match[1]!;
  throw new UsageError('Name a key by its first part, like chandler_1a2B3c4D; chandler keys list shows them.');
}

/** A time, or a duration from now. @throws UsageError unless it lies in the future. */
export function parseExpiry(text: string, now: Instant): Instant {
  const ahead = /^\+?(\d[\d.]*[a-z][\d.a-z]*)$/.exec(text);
  const at = ahead ? now + parseDuration(ahead[1]!) : parseTime(text, now);
  if (at > now) return at;
  throw new UsageError(`It must lie in the future; ${text} is ${formatInstant(at)}.`);
}
