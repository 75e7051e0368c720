/** A process of takers for `processes.test.ts`: prints one JSON line for each request sent or lost; ends when denied, or when told to. */
import { systemClock } from '../../dist/clock.js';
import { createQuota } from '../../dist/quota/ledger.js';
import { waitForPermit } from '../../dist/quota/permit.js';
import { openDatabase } from '../../dist/store/connection/connect.js';

const { url, accountId, limits, takers, name, forMs } = JSON.parse(process.argv[2]);
const database = await openDatabase({ url, max: 1 });
const quota = createQuota({
  sql: database.ledger,
  clock: systemClock,
  accountId,
  limits,
  reserved: () => ({ day: 0, month: 0 }),
  useDatabaseClock: true,
  random: Math.random,
});
// The connection is open before the first take.
await database.ledger`select`;
process.stdout.write('{"ready":true}\n');
await new Promise((resolve) => process.stdin.once('data', resolve));
process.stdin.destroy();

const print = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

/** A timer or an answer that comes later than this is the machine's fault, and turns of the next seconds may be lost by it. */
const HELD_UP_MS = 50;
const HELD_UP_FOR_MS = 2_000;
let heldUpAt = Number.NEGATIVE_INFINITY;
const noteLate = (ms) => {
  if (ms >= HELD_UP_MS) heldUpAt = systemClock.now();
};
const clock = {
  now: systemClock.now,
  sleep: async (ms, signal) => {
    const due = systemClock.now() + ms;
    await systemClock.sleep(ms, signal);
    noteLate(systemClock.now() - due);
  },
};

const stopAt = systemClock.now() + forMs;
async function takeTurns() {
  /** Granted, and not sent yet: whoever takes another one has lost it. */
  let granted = null;
  const take = async (spender) => {
    const askedAt = systemClock.now();
    if (granted !== null) print({ lost: granted.sendAt, heldUp: askedAt - heldUpAt <= HELD_UP_FOR_MS });
    granted = null;
    const turn = await quota.take(spender);
    noteLate(systemClock.now() - askedAt);
    if (turn.kind === 'granted') granted = turn;
    return turn;
  };
  while (systemClock.now() < stopAt) {
    const turn = await waitForPermit({ quota: { ...quota, take }, spender: { class: 'backfill', name }, clock });
    if (turn.kind === 'denied') return turn.reason;
    granted = null;
    print({ sendAt: turn.sendAt, now: systemClock.now() });
  }
  return 'time';
}
const ends = await Promise.all(Array.from({ length: takers }, takeTurns));
await database.close();
process.stdout.write(`${JSON.stringify({ ends })}\n`);
