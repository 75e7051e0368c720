import fc from 'fast-check';
import { createTask } from 'node-cron';
import { describe, expect, test } from 'vitest';
import { DAY } from '../../../src/core/interval.ts';
import { type Cadence, cadenceOf, parseCadence } from '../../../src/ingest/schedule/cadence.ts';

const at = (text: string) => Date.parse(text);
const iso = (instant: number | null) => (instant === null ? null : new Date(instant).toISOString());
const MINUTE = 60_000;

describe('a cadence', () => {
  test.each([
    ['*/15 * * * *', '2026-11-21T14:15:00Z', '2026-11-21T14:30:00.000Z', '2026-11-21T14:15:00.000Z'],
    ['*/15 * * * *', '2026-11-21T23:59:59.999Z', '2026-11-22T00:00:00.000Z', '2026-11-21T23:45:00.000Z'],
    ['7 */6 * * *', '2026-12-31T18:07:00.001Z', '2027-01-01T00:07:00.000Z', '2026-12-31T18:07:00.000Z'],
    ['0 22-2 * * *', '2026-11-21T12:00:00Z', '2026-11-21T22:00:00.000Z', '2026-11-21T02:00:00.000Z'],
    ['30 4 1 * *', '2026-11-21T12:00:00Z', '2026-12-01T04:30:00.000Z', '2026-11-01T04:30:00.000Z'],
    ['0 0 29 2 *', '2026-11-21T12:00:00Z', '2028-02-29T00:00:00.000Z', '2024-02-29T00:00:00.000Z'],
    ['0 9 * * mon', '2026-11-21T12:00:00Z', '2026-11-23T09:00:00.000Z', '2026-11-16T09:00:00.000Z'],
    ['0 0 L * *', '2026-02-10T12:00:00Z', '2026-02-28T00:00:00.000Z', '2026-01-31T00:00:00.000Z'],
    ['@daily', '2026-11-21T12:00:00Z', '2026-11-22T00:00:00.000Z', '2026-11-21T00:00:00.000Z'],
    ['@weekly', '2026-11-21T12:00:00Z', '2026-11-22T00:00:00.000Z', '2026-11-15T00:00:00.000Z'],
  ])('%s at %s: next and latest', (cron, now, next, latest) => {
    const cadence = cadenceOf(cron);
    expect(iso(cadence.next(at(now)))).toBe(next);
    expect(iso(cadence.latest(at(now)))).toBe(latest);
  });

  test('counts the ticks of a month, including its first instant and excluding its end', () => {
    const month = [at('2026-12-01T00:00:00Z'), at('2027-01-01T00:00:00Z')] as const;
    expect(cadenceOf('*/15 * * * *').count(...month)).toBe(31 * 96);
    expect(cadenceOf('0 0 * * *').count(...month)).toBe(31);
    expect(cadenceOf('* * * * *').count(...month)).toBe(31 * 1440);
    expect(cadenceOf('0 0 * * sun').count(...month)).toBe(4);
    expect(cadenceOf('0 0 * * *').count(month[0], month[0])).toBe(0);
    expect(cadenceOf('0 0 * * *').count(month[0], month[0] + 1)).toBe(1);
  });

  test('agrees with node-cron on the expression, minute by minute', () => {
    const field = (from: number, to: number) =>
      fc.oneof(
        fc.constant('*'),
        fc.integer({ min: from, max: to }).map(String),
        fc.integer({ min: 2, max: Math.max(2, Math.floor(to / 2)) }).map((n) => `*/${n}`),
        fc.tuple(fc.integer({ min: from, max: to }), fc.integer({ min: from, max: to })).map(([a, b]) => `${a},${b}`),
      );
    const expression = fc.tuple(field(0, 59), field(0, 23), field(1, 28), fc.constant('*'), field(0, 6));
    const begin = fc.integer({ min: at('2024-02-26T00:00:00Z'), max: at('2024-03-02T00:00:00Z') });
    fc.assert(
      fc.property(expression, begin, (fields, now) => {
        const cron = fields.join(' ');
        const task = createTask(cron, () => undefined, { timezone: 'UTC' });
        void task.destroy();
        const cadence = cadenceOf(cron);
        const end = now + DAY / 2;
        const ticks: number[] = [];
        for (let t = Math.ceil(now / MINUTE) * MINUTE; t < end; t += MINUTE) if (task.match(new Date(t))) ticks.push(t);
        expect(walked(cadence, now, end)).toEqual(ticks);
        expect(cadence.count(now, end)).toBe(ticks.length);
        if (ticks.length > 0) expect(cadence.latest(end - 1)).toBe(ticks.at(-1));
      }),
      { numRuns: 40 },
    );
  });

  test.each([
    ['every minute', /^which is not a cron expression; write minute, hour, day, month and weekday in UTC, like \*\/15/],
    ['* * * *', /not a cron expression/],
    ['61 * * * *', /not a cron expression \(61 is not a valid minute\)/],
    ['0 0 30 2 *', /30 2 is an impossible day of month/],
    ['*/10 * * * * *', /more than once a minute/],
    ['0 0 31 2 1#1', /a day that never comes|not a cron expression/],
    ['', /not a cron expression/],
    ['*/90 * * * *', /^whose \*\/90 is not a step: minutes begin again with every hour; write a step of at most 60$/],
    ['0 3,*/36 * * *', /^whose \*\/36 is not a step: hours begin again/],
  ])('%j is not a cadence', (text, problem) => {
    const parsed = parseCadence(text);
    expect('problem' in parsed && parsed.problem).toMatch(problem);
  });
});

/** The ticks in `[from, to)`, one after the other. */
function walked(cadence: Cadence, from: number, to: number): number[] {
  const ticks: number[] = [];
  for (let tick = cadence.next(from - 1); tick < to; tick = cadence.next(tick)) ticks.push(tick);
  return ticks;
}
