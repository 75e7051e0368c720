// The yardstick of a request at a pace: the least that the same libraries need for the same work, without plan, quota, checks, evidence or
// records. Asks for one year of daily candles ten times a second, parses the answer, inserts its rows in a transaction; with an address of
// Redis, each request is a job of a BullMQ queue. Prints milliseconds of processor time a request.
// argv: base URL, address of an empty database, milliseconds to warm up, milliseconds to measure, address of Redis
import postgres from 'postgres';
import { request } from 'undici';

const [baseUrl, databaseUrl, warmUpMs, measuredMs, redisUrl] = process.argv.slice(2);
const GAP_MS = 100;
const LAST_YEAR = 2025;
const sql = postgres(databaseUrl, { max: 2, onnotice: () => undefined });
await sql`create table bare_candle (number int, open_time timestamptz, open float8, high float8, low float8, close float8, volume float8,
  market_cap float8, primary key (number, open_time))`;
const coinIds = (await ask('/coins')).map(({ id }) => id);
let sent = 0;
let inserted = 0;

async function ask(path) {
  const { body, statusCode } = await request(`${baseUrl}${path}`);
  if (statusCode !== 200) throw new Error(`${path} answered ${statusCode}`);
  return JSON.parse(await body.text());
}

async function fill() {
  const number = sent++;
  // The newest first, as a backfill does: coins have more candles in them.
  const year = LAST_YEAR - Math.floor(number / coinIds.length);
  const path = `/coins/${coinIds[number % coinIds.length]}/ohlcv/historical`;
  const rows = await ask(`${path}?start=${year}-01-01&end=${year}-12-31&interval=24h&limit=366`);
  inserted += rows.length;
  const column = (name) => rows.map((row) => row[name]);
  await sql.begin(
    (tx) => tx`insert into bare_candle select ${number}::int, * from unnest(${column('time_open')}::timestamptz[],
      ${column('open')}::float8[], ${column('high')}::float8[], ${column('low')}::float8[], ${column('close')}::float8[],
      ${column('volume')}::float8[], ${column('market_cap')}::float8[])`,
  );
}

async function queued() {
  const { Queue, Worker } = await import('bullmq');
  const connection = { url: redisUrl };
  const queue = new Queue('bare', { connection });
  new Worker('bare', fill, { connection, concurrency: 8 }).on('failed', (_, error) => fail(error));
  return () => queue.add('fill', {}, { removeOnComplete: true });
}

function fail(error) {
  console.error(error);
  process.exit(1);
}

const start = redisUrl ? await queued() : fill;
setInterval(() => start().catch(fail), GAP_MS);
setTimeout(() => {
  const [cpu, first, firstRow] = [process.cpuUsage(), sent, inserted];
  setTimeout(() => {
    const { user, system } = process.cpuUsage(cpu);
    const requests = sent - first;
    console.log(
      JSON.stringify({ cpuMsPerRequest: (user + system) / 1000 / requests, rows: (inserted - firstRow) / requests }),
    );
    process.exit(0);
  }, Number(measuredMs));
}, Number(warmUpMs));
