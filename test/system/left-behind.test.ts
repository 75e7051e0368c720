import { describe, expect, test } from 'vitest';
import { runCli } from '../support/program.ts';
import { backfill, CHUNKS, killed, reportOf, setScene } from './left-behind.ts';

describe('the chunks of a run that was killed', () => {
  test('are removed by the next run, which sends no request for them', async (context) => {
    const scene = await setScene(context);
    const { askedOf, queued, settings, statesOf } = scene;
    const before = await killed(scene, 'btc-bitcoin');
    // The abandoned chunks are in the queue already, so nothing depends on the rate any more.
    const { code, out, err } = await runCli(backfill('eth-ethereum'), {
      ...settings,
      CHANDLER_REQUESTS_PER_SECOND: '60',
    });
    expect(code, err).toBe(0);
    expect(reportOf(out)).toMatchObject({ end: 'done', requests: CHUNKS });
    expect([askedOf('eth-ethereum'), askedOf('btc-bitcoin')]).toEqual([CHUNKS, before]);
    expect(await queued()).toBe(0);
    expect(await statesOf()).toEqual(['interrupted', 'done']);
  });
});
