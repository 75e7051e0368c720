import { describe, expect, test } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../src/core/interval.ts';
import { createAnswerClock } from '../../src/upstream/answer-time.ts';

const NOW = Date.UTC(2026, 9, 1, 12);
const NEVER = Date.UTC(1970, 0, 1);

/** One upstream's answers in turn, all sent and received at `NOW` by our clock; `date` null: there is no such header. */
function answers() {
  const timeOf = createAnswerClock();
  return (date: number | null, age?: string) =>
    timeOf({ sentAt: NOW, now: NOW }, (name) =>
      name === 'age' ? (age ?? null) : date === null ? null : new Date(date).toUTCString(),
    );
}

describe('which instant an answer knows', () => {
  test('the earlier of our clock and its Date, less its Age', () => {
    const read = answers();
    expect(read(NOW - MINUTE)).toMatchObject({ asOf: NOW - MINUTE, date: NOW - MINUTE, isByOurClock: false });
    expect(read(NOW + MINUTE)).toMatchObject({ asOf: NOW, latest: NOW + MINUTE });
    expect(read(NOW, '600')).toMatchObject({ asOf: NOW - 10 * MINUTE, ageMs: 10 * MINUTE });
  });

  test('a Date behind our clock counts at once, also for answers after it', () => {
    const read = answers();
    expect(read(NOW - 2 * HOUR)).toMatchObject({ asOf: NOW - 2 * HOUR });
    for (const none of [null, NEVER]) expect(read(none)).toMatchObject({ asOf: NOW - 2 * HOUR, date: null });
    expect(read(NOW - 2 * HOUR)).toMatchObject({ asOf: NOW - 2 * HOUR });
    // Our clock is known to be ahead now, whatever a single answer says.
    expect(read(NOW + 3 * DAY)).toMatchObject({ asOf: NOW - 2 * HOUR });
    expect(read(null)).toMatchObject({ asOf: NOW - 2 * HOUR });
  });

  test('a Date ahead of our clock counts once the next answer confirms it', () => {
    const read = answers();
    // Which of the two is wrong is not known, or both are.
    expect(read(NOW + 2 * HOUR)).toMatchObject({ asOf: NOW - 2 * HOUR });
    expect(read(NOW + 2 * HOUR)).toMatchObject({ asOf: NOW });
    expect(read(NOW + 2 * HOUR)).toMatchObject({ asOf: NOW });
  });

  test('a false Date before any true one', () => {
    const read = answers();
    for (const none of [null, NEVER]) expect(read(none)).toMatchObject({ asOf: NOW, isByOurClock: true });
    expect(read(NOW + 3 * DAY)).toMatchObject({ asOf: NOW - 3 * DAY, isByOurClock: false });
    expect(read(null)).toMatchObject({ asOf: NOW });
    expect(read(NOW - 2 * HOUR)).toMatchObject({ asOf: NOW - 2 * HOUR });
  });

  test('our clock is set right', () => {
    const read = answers();
    for (const date of [NOW + HOUR, NOW + HOUR, NOW, NOW]) read(date);
    expect(read(NOW)).toMatchObject({ asOf: NOW });
  });
});
