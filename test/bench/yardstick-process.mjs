// One half of a backfill in a process of its own, from the build, as cold and with the same settings of its engine as the command
// itself: `fetch` gets the same answers with the same client and parses nothing; `write` stores the same rows with the same statements.
import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';

const [dist, half, file] = process.argv.slice(2);
const { tuneV8 } = await import(`${dist}/cli/shell/v8.js`);
tuneV8();
const { baseUrl, databaseUrl, interval, limit, concurrency, patienceMs, asked } = JSON.parse(
  readFileSync(file, 'utf8'),
);

const { systemClock } = await import(`${dist}/clock.js`);
const { ohlcvParameters, ohlcvPath } = await import(`${dist}/contract/interface/paths.js`);
const { INTERVAL_MS } = await import(`${dist}/core/interval.js`);

const ms = half === 'fetch' ? await fetchAll() : await writeAll();
console.log(JSON.stringify({ ms }));
process.exit(0);

function questionOf({ coinId, span }) {
  const to = span.to - INTERVAL_MS[interval];
  return { path: ohlcvPath(coinId), query: ohlcvParameters({ from: span.from, to, interval, quote: 'usd', limit }) };
}

/** Calls `work` for each item, as many at once as the backfill does; resolves to milliseconds. */
async function timedEach(items, work) {
  const startedAt = performance.now();
  const rest = items.values();
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (const item of rest) await work(item);
    }),
  );
  return performance.now() - startedAt;
}

async function fetchAll() {
  const { createSocketWire } = await import(`${dist}/upstream/wire.js`);
  const { decompress, readRawBody } = await import(`${dist}/upstream/body.js`);
  const wire = createSocketWire({ connectMs: patienceMs, headersMs: patienceMs, bodyMs: patienceMs }, 1e8);
  const headers = { accept: 'application/json', 'accept-encoding': 'gzip', 'user-agent': 'chandler' };
  const urls = asked.map((one) => {
    const { path, query } = questionOf(one);
    return new URL(`${baseUrl}${path}?${new URLSearchParams(query)}`);
  });
  return timedEach(urls, async (url) => {
    const answer = await wire.send({ url, headers, signal: new AbortController().signal });
    const body = await decompress(await readRawBody(answer.body, 1e8), answer.header('content-encoding'), 1e8);
    if (answer.status !== 200 || body.kind !== 'whole') throw new Error(`${url} answered ${answer.status}`);
  });
}

async function writeAll() {
  const { createUpstream } = await import(`${dist}/upstream/client.js`);
  const { readOhlcvRows } = await import(`${dist}/contract/record/ohlcv.js`);
  const { validate } = await import(`${dist}/ingest/chunk/validate.js`);
  const { weigh } = await import(`${dist}/ingest/chunk/evidence.js`);
  const { openDatabase } = await import(`${dist}/store/connection/connect.js`);
  const { storeChunk } = await import(`${dist}/store/candle/chunk.js`);
  // All answers decoded and checked before the clock starts: what is left is to write them.
  const upstream = createUpstream({ baseUrl, key: null, clock: systemClock });
  const prepared = [];
  for (const one of asked) {
    const answer = await upstream.send(questionOf(one));
    const read = answer.kind === 'answered' ? readOhlcvRows(answer.body) : null;
    if (!read?.ok) throw new Error(`${one.coinId}: no answer`);
    const { sentAt, durationMs, status, bytes, bodySha256 } = answer.exchange;
    const findings = validate({ coinId: one.coinId, interval, span: one.span }, read.rows, systemClock.now());
    prepared.push({ ...one, findings, exchange: { sentAt, durationMs, status, bytes, bodySha256 } });
  }
  await upstream.close();
  const { sql } = await openDatabase({ url: databaseUrl, max: concurrency });
  await Promise.all(Array.from({ length: concurrency }, () => sql`select 1`));
  return timedEach(prepared, ({ seriesId, span, findings, exchange }) => {
    const { sentAt } = exchange;
    const record = {
      accountId: 'anonymous@bench',
      endpoint: 'ohlcv',
      seriesId,
      span,
      backfillId: 1,
      attempt: 1,
      message: null,
    };
    const answer = {
      series: { id: seriesId, interval },
      span,
      asOf: sentAt,
      candles: findings.candles,
      open: [],
      quarantined: findings.quarantined,
      fetch: { ...record, ...exchange, asOf: sentAt, outcome: 'stored', rows: findings.rowCount },
    };
    const facts = { span, interval, findings, sentAt, asOf: sentAt, ageMs: 0, limit };
    return storeChunk(sql, answer, (known) => weigh({ ...facts, known }));
  });
}
