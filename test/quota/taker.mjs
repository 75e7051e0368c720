/** A process of takers for `processes.test.ts`: prints one JSON line for each grant; ends when denied, or when told to. */
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

const stopAt = systemClock.now() + forMs;
async function takeTurns() {
  while (systemClock.now() < stopAt) {
    const turn = await waitForPermit({ quota, spender: { class: 'backfill', name }, clock: systemClock });
    if (turn.kind === 'denied') return turn.reason;
    process.stdout.write(`${JSON.stringify({ sendAt: turn.sendAt, now: systemClock.now() })}\n`);
  }
  return 'time';
}
const ends = await Promise.all(Array.from({ length: takers }, takeTurns));
await database.close();
process.stdout.write(`${JSON.stringify({ ends })}\n`);
