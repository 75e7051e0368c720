import { describe, expect, test } from 'vitest';
import { CHUNKS, IN_FLIGHT, killed, reportOf, setScene } from './left-behind.ts';

describe('a run that was suspended until another run took it for dead', { concurrent: true }, () => {
  test('goes on when it is woken and completes: each chunk is requested once, except those in flight', async (context) => {
    const { database, askedOf, start, untilAsked, statesOf } = await setScene(context);
    const sleeper = await start('btc-bitcoin');
    await untilAsked(sleeper, 'btc-bitcoin', 20);
    sleeper.process.kill('SIGSTOP');
    const before = askedOf('btc-bitcoin');
    // As if it had slept for minutes.
    await database.sql`update ops.backfill set heartbeat_at = heartbeat_at - interval '5 minutes'`;
    // At this rate the other run takes longer than a heartbeat.
    const other = await start('eth-ethereum');
    const ended = await other.ended;
    expect(ended.code, ended.err).toBe(0);
    expect(reportOf(ended.out)).toMatchObject({ end: 'done', requests: CHUNKS });
    expect(await statesOf()).toEqual(['interrupted', 'done']);
    expect(askedOf('btc-bitcoin')).toBeLessThanOrEqual(before + IN_FLIGHT);

    sleeper.process.kill('SIGCONT');
    const { code, out, err } = await sleeper.ended;
    expect(code, err).toBe(0);
    expect(reportOf(out)).toMatchObject({ end: 'done', gaps: [], failed: [] });
    expect(await statesOf()).toEqual(['done', 'done']);
    // The answer to a request in flight at the suspension may have been too long ago.
    expect(askedOf('btc-bitcoin')).toBeGreaterThanOrEqual(CHUNKS);
    expect(askedOf('btc-bitcoin')).toBeLessThanOrEqual(CHUNKS + IN_FLIGHT);
  });
});

describe('the chunks of a run that was killed', { concurrent: true }, () => {
  test('are dropped without a request while other runs go on, and the chunks of those runs stay', async (context) => {
    const scene = await setScene(context);
    const { askedOf, queued, start, statesOf, untilAsked } = scene;
    const living = await start('ltc-litecoin');
    await untilAsked(living, 'ltc-litecoin', 5);
    await killed(scene, 'btc-bitcoin');
    // Until another run finds out that it was killed, the living run works on its chunks.
    const next = await start('eth-ethereum');
    const [one, two] = await Promise.all([living.ended, next.ended]);
    expect([one.code, two.code], one.err + two.err).toEqual([0, 0]);
    expect(reportOf(one.out)).toMatchObject({ end: 'done', requests: CHUNKS });
    expect(reportOf(two.out)).toMatchObject({ end: 'done', requests: CHUNKS });
    expect(askedOf('btc-bitcoin')).toBeLessThan(CHUNKS);
    expect(askedOf('eth-ethereum')).toBe(CHUNKS);
    // The killed run worked on chunks of the living run, too. Its requests in flight are sent again.
    expect(askedOf('ltc-litecoin')).toBeGreaterThanOrEqual(CHUNKS);
    expect(askedOf('ltc-litecoin')).toBeLessThanOrEqual(CHUNKS + IN_FLIGHT);
    expect(await queued()).toBe(0);
    expect((await statesOf()).sort()).toEqual(['done', 'done', 'interrupted']);
  });
});
