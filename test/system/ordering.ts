/** Requests the hours of one series and stores the answers in the order that a test wants, whatever the order of the requests. */
import { SIMULATOR_HEADER } from '../../src/contract/interface/paths.ts';
import { HOUR } from '../../src/core/interval.ts';
import type { ChunkJob } from '../../src/ingest/queue/chunk-job.ts';
import { refreshCatalogue } from '../../src/ingest/snapshot/coin-list.ts';
import { finishBackfill, startBackfill } from '../../src/store/backfill/backfill.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { createScripted } from '../support/scripted.ts';
import { createWorld } from '../support/world.ts';

/** 2026-11-18T12:00Z: slots up to 10:00 have closed and settled, 11:00 is being corrected, 12:00 has just begun. */
export const NOW = Date.UTC(2026, 10, 18, 12);
export const hour = (n: number) => NOW + n * HOUR;
const COIN = 'btc-bitcoin';
const SEED = 3;

/** A price in an answer. The tests write small numbers, which as real prices would jump too far from one hour to the next. */
export const onWire = (price: number) => 10_000 + price;
const fromWire = (price: number | null) => price && price - 10_000;

/** One candle's price by hour. `null` leaves its slot out of the answer, `impossible` sends an impossible row. */
export type Prices = Readonly<Record<number, number | null | 'impossible'>>;

export type Reply = (request: Request) => Response | Promise<Response>;

/** An answer to the request with these prices. A request for prices gets prices. */
export const answer =
  (prices: Prices, headers: Record<string, string> = {}): Reply =>
  (request) => {
    const { pathname, searchParams } = new URL(request.url);
    const isOfPrices = pathname.endsWith(PRICES);
    const [start, end] = [Date.parse(searchParams.get('start')!), Date.parse(searchParams.get('end')!)];
    const rows = Object.entries(prices)
      .filter((entry): entry is [string, number | 'impossible'] => entry[1] !== null)
      // For prices the end is exclusive.
      .filter(([n]) => hour(Number(n)) >= start && hour(Number(n)) < end + (isOfPrices ? 0 : 1))
      .sort(([a], [b]) => Number(a) - Number(b))
      .map(([n, price]) => (isOfPrices ? priceRow : candleRow)(hour(Number(n)), price));
    return Response.json(rows, { headers: { ...headers, [SIMULATOR_HEADER]: `made-up, seed ${SEED}` } });
  };

const PRICES = `/tickers/${COIN}/historical`;

function candleRow(at: number, price: number | 'impossible') {
  return {
    time_open: new Date(at).toISOString(),
    time_close: new Date(at + HOUR - 1_000).toISOString(),
    ...(price === 'impossible'
      ? { open: 1, high: 1, low: 2, close: 1 }
      : { open: onWire(price), high: onWire(price + 1), low: onWire(price - 1), close: onWire(price) }),
    volume: 1_000,
    market_cap: null,
  };
}

function priceRow(at: number, price: number | 'impossible') {
  return {
    timestamp: new Date(at).toISOString(),
    price: price === 'impossible' ? -1 : onWire(price),
    volume_24h: 1_000,
    market_cap: null,
  };
}

/** An answer that is sent when the test opens the gate. */
export function gate() {
  let open: (reply: Reply) => void = () => undefined;
  const opened = new Promise<Reply>((resolve) => {
    open = resolve;
  });
  const reply: Reply = async (request) => (await opened)(request);
  return { reply, open };
}

export type Ordering = Awaited<ReturnType<typeof openOrdering>>;

/** The intervals whose answers are ordered. */
export const ORDERED = ['1h', 'prices-1h'] as const;

export async function openOrdering(interval: (typeof ORDERED)[number]) {
  const upstream = createScripted();
  const world = await createWorld({
    startAt: NOW,
    fetch: upstream.fetch,
    simulator: { seed: SEED, coins: 5, unlimited: true },
  });
  const chandler = await world.open();
  const { sql } = world.database;

  async function arrived(before: number): Promise<'arrived'> {
    while (upstream.ohlcv().length === before) await world.clock.sleep(1);
    return 'arrived';
  }

  return {
    world,

    /** Sends the chunk `[from, to)` as a separate run would. `reply` resolves when the upstream answers. */
    async ask(from: number, to: number, reply: Reply) {
      await refreshCatalogue({ sendRequest: chandler.session.sendRequest, sql, clock: world.clock }, 0);
      const span = { from: hour(from), to: hour(to) };
      const ids = await wantSeries(sql, { coinIds: [COIN], quote: 'usd', interval, span, priority: 0 });
      const backfillId = await startBackfill(sql, {
        spec: {},
        span,
        interval,
        quote: 'usd',
        plannedRequests: 1,
        owner: 'test:1',
        requestedAt: world.clock.now(),
        startedAt: world.clock.now(),
      });
      upstream.script = (request) =>
        /ohlcv|\/tickers\/.*historical/.test(request.url) ? Promise.resolve(reply(request)) : null;
      const job: ChunkJob = {
        kind: 'backfill',
        backfillId,
        seriesId: ids[0]!,
        coinId: COIN,
        quote: 'usd',
        interval,
        ...span,
        askedSince: world.clock.now(),
      };
      const sent = upstream.ohlcv().length;
      const outcome = chandler.session.ingestChunk(job);
      const early = await Promise.race([outcome, arrived(sent)]);
      if (early !== 'arrived') throw new Error(`nothing was asked: ${JSON.stringify(early)}`);
      const done = async () => {
        await outcome;
        await finishBackfill(sql, backfillId, 'done', world.clock.now());
      };
      return { outcome, done };
    },

    /** Stored price by hour. */
    async stored(): Promise<Record<number, number | null>> {
      const rows = await sql<{ at: number; open: number | null }[]>`
        select c.open_time as at, c.open from market.series s cross join ops.stored(s.id, s.interval) c order by 1`;
      return Object.fromEntries(rows.map((row) => [(row.at - NOW) / HOUR, fromWire(row.open)]));
    },

    async covered(): Promise<string> {
      const [row] = await sql<{ covered: string }[]>`select covered::text from market.series`;
      return row!.covered;
    },

    /** In the format of `covered`. */
    async hours(from: number, to: number): Promise<string> {
      const [row] = await sql<{ text: string }[]>`
        select ${[{ from: hour(from), to: hour(to) }]}::tstzmultirange::text as text`;
      return row!.text;
    },

    async revisions() {
      const rows = await sql<{ hour: number; open: number | null; close: number | null }[]>`
        select (extract(epoch from open_time - ${NOW}::timestamptz) / 3600)::int as hour,
          open, close, volume, market_cap
        from market.revision order by id`;
      return rows.map((row) => ({ ...row, open: fromWire(row.open), close: fromWire(row.close) }));
    },

    /** As if nothing had ever been requested. */
    async forget(): Promise<void> {
      await sql`truncate market.candle, market.price, market.revision, ops.second_opinion, market.quarantine, ops.fetch,
        ops.backfill, market.series cascade`;
    },
  };
}
