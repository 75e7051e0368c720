/** Durations as people type them: `90s`, `5m`, `2h`, `1h30m`. */
import { UsageError } from '../shell/exit.ts';

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;
type Unit = keyof typeof UNIT_MS;

const TEN_YEARS_MS = 10 * 365 * UNIT_MS.d;

/** Milliseconds. @throws UsageError that says how to write a duration. */
export function parseDuration(text: string, mostMs: number = TEN_YEARS_MS): number {
  const parts = /^(?:\d+(?:\.\d+)?(?:ms|[smhdw]))+$/.test(text) ? [...text.matchAll(/([\d.]+)(ms|[smhdw])/g)] : [];
  if (parts.length === 0) {
    const bare = /^\d+$/.test(text) ? `; write ${text}s, ${text}m or ${text}h` : '';
    throw new UsageError(`A duration is a number with its unit, like 90s, 5m, 2h or 1h30m${bare}.`);
  }
  const total = parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * UNIT_MS[unit as Unit], 0);
  if (total > mostMs) throw new UsageError('It must not be longer than ten years.');
  return Math.round(total);
}
