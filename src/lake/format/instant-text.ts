/** Converts instants in microseconds to ISO 8601 in UTC, and back: `2024-01-31T12:00:00Z`, with a fraction only if it is not zero. */

const DAY_SECONDS = 86_400;
/** The first and the end of the years that ISO 8601 writes with four digits, in seconds since 1970. */
const [YEAR_0, YEAR_10000] = [-62_167_219_200, 253_402_300_800];

/** The returned function caches the last day, because rows are sorted by time. */
export function createInstantFormat(): (microseconds: bigint) => string {
  let day = Number.NaN;
  let dayText = '';
  return (microseconds) => {
    // Exact, because the seconds are split off as bigints. A double holds microseconds exactly only until the year 2255.
    const seconds = Number(microseconds / 1_000_000n) - (microseconds % 1_000_000n < 0n ? 1 : 0);
    if (seconds < YEAR_0 || seconds >= YEAR_10000)
      throw new RangeError(`${microseconds} microseconds lie outside the years 0 to 9999`);
    const fraction = Number(microseconds - BigInt(seconds) * 1_000_000n);
    const days = Math.floor(seconds / DAY_SECONDS);
    if (days !== day) {
      day = days;
      dayText = new Date(days * DAY_SECONDS * 1_000).toISOString().slice(0, 10);
    }
    const time = seconds - days * DAY_SECONDS;
    const clock = `${two(Math.floor(time / 3_600))}:${two(Math.floor(time / 60) % 60)}:${two(time % 60)}`;
    return `${dayText}T${clock}${fraction === 0 ? '' : fractionOf(fraction)}Z`;
  };
}

function two(value: number): string {
  return value < 10 ? `0${value}` : String(value);
}

/** The fraction of a second: three digits where they are enough, otherwise six. */
function fractionOf(microseconds: number): string {
  const digits = String(microseconds).padStart(6, '0');
  return `.${digits.endsWith('000') ? digits.slice(0, 3) : digits}`;
}

const ISO = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(?:Z|\+00(?::?00)?)$/;

/** Null when the text is not an instant in UTC. */
export function readInstantText(text: string): bigint | null {
  const [, day, time, fraction = ''] = ISO.exec(text) ?? [];
  if (day === undefined) return null;
  const ms = Date.parse(`${day}T${time}Z`);
  return Number.isNaN(ms) ? null : BigInt(ms) * 1_000n + BigInt(fraction.padEnd(6, '0'));
}
