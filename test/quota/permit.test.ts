import { expect, it } from 'vitest';
import { createGate, type Gate } from '../../src/quota/gate.ts';
import { waitForPermit } from '../../src/quota/permit.ts';
import type { Quota, Take } from '../../src/quota/quota.ts';
import { createManualClock } from './manual-clock.ts';

const spender = { class: 'backfill', name: 'b' } as const;

const granted = (sendAt: number, goodFor = 2000) => ({ kind: 'granted', sendAt, goodUntil: sendAt + goodFor }) as const;

/** A quota that answers from a list and counts the takes. */
function scripted(takes: readonly Take[], gate: Gate = createGate(null)) {
  let asked = 0;
  const quota = { gate, take: async () => takes[asked++]! } as unknown as Quota;
  return { quota, asked: () => asked };
}

it('a caller sleeps until the send time of its permit and never continues before it', async () => {
  const clock = createManualClock(1000);
  // This timer fires early, as real ones may.
  const early = { ...clock, sleep: (ms: number) => clock.sleep(Math.ceil(ms / 2)) };
  const { quota, asked } = scripted([granted(1777)]);
  expect(await waitForPermit({ quota, spender, clock: early })).toEqual(granted(1777));
  expect(clock.now()).toBe(1777);
  expect(asked()).toBe(1);
});

it('a caller that overslept takes another permit, because the first may count in another second or day by now', async () => {
  const clock = createManualClock(1000);
  let suspended = true;
  const sleepy = {
    ...clock,
    sleep: async (ms: number) => {
      await clock.sleep(suspended ? ms + 2001 : ms);
      suspended = false;
    },
  };
  const { quota, asked } = scripted([granted(1500), granted(4000)]);
  expect(await waitForPermit({ quota, spender, clock: sleepy })).toEqual(granted(4000));
  expect(asked()).toBe(2);
});

it('a caller takes another permit when the clock was set back while it slept, instead of sleeping longer', async () => {
  const clock = createManualClock(1_000_000);
  const sleeping: number[] = [];
  const turned = {
    ...clock,
    sleep: async (ms: number) => {
      sleeping.push(ms);
      if (sleeping.length === 1) clock.set(0);
      else await clock.sleep(ms);
    },
  };
  const { quota } = scripted([granted(1_000_500), granted(300)]);
  expect(await waitForPermit({ quota, spender, clock: turned })).toEqual(granted(300));
  expect(sleeping).toEqual([500, 300]);
});

it('a caller waits out the queue, and is told of every other denial', async () => {
  const clock = createManualClock(0);
  const denied = { kind: 'denied', reason: 'limited', until: 60_000 } as const;
  const { quota, asked } = scripted([{ kind: 'denied', reason: 'queue', until: 400 }, denied]);
  expect(await waitForPermit({ quota, spender, clock })).toEqual(denied);
  expect(asked()).toBe(2);
  expect(clock.now()).toBe(400);
});

it('a caller that is told to stop before it has taken a permit stops', async () => {
  const clock = createManualClock(0);
  const stop = new AbortController();
  const { quota, asked } = scripted([{ kind: 'denied', reason: 'queue', until: 500 }]);
  const hanging = { ...clock, sleep: (_ms: number, signal?: AbortSignal) => untilAborted(signal!) };
  const turn = waitForPermit({ quota, spender, clock: hanging, signal: stop.signal });
  stop.abort(new Error('enough'));
  await expect(turn).rejects.toThrow('enough');
  await expect(waitForPermit({ quota, spender, clock, signal: stop.signal })).rejects.toThrow('enough');
  expect(asked()).toBe(1);
});

it.each(['while it is taken', 'while it is waited for'])(
  'a caller that is told to stop %s still uses its granted permit, because that is already counted',
  async (when) => {
    const clock = createManualClock(0);
    const stop = new AbortController();
    const take = granted(500);
    const quota = {
      gate: createGate(null),
      take: async () => {
        if (when === 'while it is taken') stop.abort(new Error('enough'));
        return take;
      },
    } as unknown as Quota;
    const told = {
      ...clock,
      sleep: async (ms: number, signal?: AbortSignal) => {
        stop.abort(new Error('enough'));
        await clock.sleep(ms, signal);
      },
    };
    expect(await waitForPermit({ quota, spender, clock: told, signal: stop.signal })).toEqual(take);
    expect(clock.now()).toBe(500);
  },
);

it('a caller does not use a permit that is late, and takes another', async () => {
  for (const [late, asks] of [
    [101, 1],
    [102, 2],
  ] as const) {
    const clock = createManualClock(0);
    const heldUp = { ...clock, sleep: (ms: number) => clock.sleep(clock.now() === 0 ? ms + late : ms) };
    const { quota, asked } = scripted([granted(500, 101), granted(900, 101)]);
    expect(await waitForPermit({ quota, spender, clock: heldUp })).toMatchObject({ kind: 'granted' });
    expect(asked()).toBe(asks);
  }
});

it('the gate never lets more requests through in a second than the limit, and drops permits that cannot be used in time', async () => {
  const clock = createManualClock(0);
  const due = Array.from({ length: 40 }, () => granted(0, 3000));
  const { quota } = scripted([...due, granted(9_000)], createGate(10));
  const sent: number[] = [];
  for (let i = 0; i < 31; i++) {
    await waitForPermit({ quota, spender, clock });
    sent.push(clock.now());
  }
  expect(sent).toEqual([...Array(10).fill(0), ...Array(10).fill(1002), ...Array(10).fill(2004), 9_000]);
});

it('the gate does not close for a day when the clock is set back', async () => {
  const clock = createManualClock(1_000_000);
  const { quota } = scripted([granted(1_000_000), granted(500)], createGate(1));
  await waitForPermit({ quota, spender, clock });
  clock.set(0);
  await waitForPermit({ quota, spender, clock });
  expect(clock.now()).toBe(500);
});

it('a permit granted before the upstream asked for a pause is lost, and no other is taken until the pause ends', async () => {
  const clock = createManualClock(0);
  const gate = createGate(null);
  const told = {
    ...clock,
    sleep: async (ms: number) => {
      await clock.sleep(ms);
      gate.hold(clock.now(), { reason: 'limited', until: 20_000 });
    },
  };
  const { quota, asked } = scripted([granted(500), granted(20_000)], gate);
  const denied = { kind: 'denied', reason: 'limited', until: 20_000 };
  expect(await waitForPermit({ quota, spender, clock: told })).toEqual(denied);
  expect(await waitForPermit({ quota, spender, clock: told })).toEqual(denied);
  expect(asked()).toBe(1);
  clock.set(20_000);
  expect(await waitForPermit({ quota, spender, clock })).toEqual(granted(20_000));
});

it('an answer to a later request ends the hold of an outage, but not the hold of a limit', () => {
  const gate = createGate(null);
  gate.hold(100, { reason: 'unavailable', until: 5_000 });
  gate.answered(100);
  expect(gate.heldAt(200)).toMatchObject({ until: 5_000 });
  gate.answered(101);
  expect(gate.heldAt(200)).toBeNull();
  gate.hold(300, { reason: 'limited', until: 5_000 });
  gate.hold(300, { reason: 'limited', until: 4_000 });
  gate.answered(301);
  expect(gate.heldAt(4_999)).toMatchObject({ until: 5_000 });
  expect(gate.heldAt(5_000)).toBeNull();
});

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
