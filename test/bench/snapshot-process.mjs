// Takes snapshots of the tickers, one after the other, in a process of its own, from the build, and tells what they needed as JSON.
import { performance } from 'node:perf_hooks';

const [dist, url, baseUrl, count] = process.argv.slice(2);
const { openDatabase } = await import(`${dist}/store/connection/connect.js`);
const { systemClock } = await import(`${dist}/clock.js`);
const { createUpstream } = await import(`${dist}/upstream/client.js`);
const { openSession } = await import(`${dist}/ingest/session.js`);
const { createSnapshots } = await import(`${dist}/ingest/snapshot/snapshots.js`);
const { createQuota } = await import(`${dist}/quota/ledger.js`);

const database = await openDatabase({ url });
const { sql } = database;
const clock = systemClock;
const upstream = createUpstream({ baseUrl, key: null, clock });
const limits = { perMonth: null, perDay: null, perSecond: null };
const session = await openSession({
  sql,
  clock,
  upstream,
  baseUrl,
  apiKey: null,
  authScheme: 'auto',
  plan: 'enterprise',
  limitsOf: () => limits,
  candlesPerRequest: null,
  createQuota: (account) =>
    createQuota({
      sql,
      clock,
      ...account,
      reserved: () => ({ day: 0, month: 0 }),
      useDatabaseClock: true,
      random: Math.random,
    }),
});
const snapshots = createSnapshots({ sql, clock, sendRequest: session.sendRequest, accountId: session.accountId });
const taken = [];
for (let i = 0; i < Number(count); i++) {
  const startedAt = performance.now();
  const before = process.cpuUsage();
  const outcome = await snapshots.tickers();
  const [fetch] = await sql`select duration_ms from ops.fetch order by id desc limit 1`;
  const { user, system } = process.cpuUsage(before);
  taken.push({
    ms: performance.now() - startedAt,
    cpuMs: (user + system) / 1000,
    fetchMs: fetch.durationMs,
    kind: outcome.kind,
    stored: outcome.stored,
  });
}
await upstream.close();
await database.close();
console.log(JSON.stringify({ taken, rssMb: process.resourceUsage().maxRSS / 1024 }));
