// Plans one backfill of every coin in a process of its own, from the build, and tells what it needed as JSON.
import { performance } from 'node:perf_hooks';

const [dist, url, from, to, now] = process.argv.slice(2);
const { openDatabase } = await import(`${dist}/store/connection/connect.js`);
const { activeCoins } = await import(`${dist}/store/snapshot/coin.js`);
const { planBackfill } = await import(`${dist}/ingest/backfill/plan.js`);
const { documentedLimit } = await import(`${dist}/ingest/limits/history-limit.js`);
const { planOf } = await import(`${dist}/contract/plan/plans.js`);

const database = await openDatabase({ url });
const startedAt = performance.now();
const coinIds = (await activeCoins(database.sql)).map((coin) => coin.id);
const plan = planOf('enterprise');
const target = { coinIds, quote: 'usd', interval: '24h', span: { from: Number(from), to: Number(to) } };
const historyLimit = documentedLimit(plan, '24h');
const made = await planBackfill({
  sql: database.sql,
  target,
  now: Number(now),
  requestedSince: Number(now),
  plan,
  historyLimit,
});
const ms = performance.now() - startedAt;
await database.close();
const { maxRSS } = process.resourceUsage();
console.log(
  JSON.stringify({ ms, rssMb: maxRSS / 1024, coins: made.coins, coinsWithGaps: made.coinsWithGaps, ...made.cost }),
);
