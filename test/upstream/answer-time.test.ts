import { describe, expect, test } from 'vitest';
import { DAY, HOUR, MINUTE } from '../../src/core/interval.ts';
import { createAnswerClock } from '../../src/upstream/answer-time.ts';

const NOW = Date.UTC(2026, 9, 1, 12);
const NEVER = Date.UTC(1970, 0, 1);

/** Successive answers of one upstream, each sent and received at `NOW` of our clock. A null `date` means that the header is missing. */
function answers() {
  const timeOf = createAnswerClock();
  return (date: number | null, age?: string) =>
    timeOf({ sentAt: NOW, now: NOW }, (name) =>
      name === 'age' ? (age ?? null) : date === null ? null : new Date(date).toUTCString(),
    );
}

describe('the instant that an answer is as of', () => {
  test('is the earlier of our clock and its Date, minus its Age', () => {
    const read = answers();
    expect(read(NOW - MINUTE)).toMatchObject({ asOf: NOW - MINUTE, date: NOW - MINUTE, isByOurClock: false });
    expect(read(NOW + MINUTE)).toMatchObject({ asOf: NOW, latest: NOW + MINUTE });
    expect(read(NOW, '600')).toMatchObject({ asOf: NOW - 10 * MINUTE, ageMs: 10 * MINUTE });
  });

  test('follows a Date behind our clock at once, also in later answers', () => {
    const read = answers();
    expect(read(NOW - 2 * HOUR)).toMatchObject({ asOf: NOW - 2 * HOUR });
    for (const none of [null, NEVER]) expect(read(none)).toMatchObject({ asOf: NOW - 2 * HOUR, date: null });
    expect(read(NOW - 2 * HOUR)).toMatchObject({ asOf: NOW - 2 * HOUR });
    // Now our clock is known to be ahead, whatever a single answer says.
    expect(read(NOW + 3 * DAY)).toMatchObject({ asOf: NOW - 2 * HOUR });
    expect(read(null)).toMatchObject({ asOf: NOW - 2 * HOUR });
  });

  test('follows a Date ahead of our clock once the next answer confirms it', () => {
    const read = answers();
    // Either clock may be wrong, or both.
    expect(read(NOW + 2 * HOUR)).toMatchObject({ asOf: NOW - 2 * HOUR });
    expect(read(NOW + 2 * HOUR)).toMatchObject({ asOf: NOW });
    expect(read(NOW + 2 * HOUR)).toMatchObject({ asOf: NOW });
  });

  test('is not moved for later answers by one false Date', () => {
    const read = answers();
    for (const none of [null, NEVER]) expect(read(none)).toMatchObject({ asOf: NOW, isByOurClock: true });
    expect(read(NOW + 3 * DAY)).toMatchObject({ asOf: NOW - 3 * DAY, isByOurClock: false });
    expect(read(null)).toMatchObject({ asOf: NOW });
    expect(read(NOW - 2 * HOUR)).toMatchObject({ asOf: NOW - 2 * HOUR });
  });

  test('follows our clock again after it was set right', () => {
    const read = answers();
    for (const date of [NOW + HOUR, NOW + HOUR, NOW, NOW]) read(date);
    expect(read(NOW)).toMatchObject({ asOf: NOW });
  });
});
