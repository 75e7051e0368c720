/** `/coins/{id}/ohlcv` and below: candles. An unknown coin has none: 200 `[]`, as upstream (decision 11). */
import { type Context, Hono } from 'hono';
import type { Clock, Instant } from '../clock.ts';
import type { Access } from '../contract/access.ts';
import type { MarketData } from '../contract/market-data.ts';
import { writeOhlcvRows } from '../contract/ohlcv.ts';
import { parseOhlcvParameters, parseQuote } from '../contract/parameters.ts';
import { DAY, floorToGrid } from '../core/interval.ts';
import { answerWritten, redirect, refuse } from './answer.ts';
import type { ServiceEnv } from './service-env.ts';

export function ohlcvRoutes({
  data,
  access,
  clock,
}: {
  data: MarketData;
  access: Access;
  clock: Clock;
}): Hono<ServiceEnv> {
  const routes = new Hono<ServiceEnv>();

  const historical = async (c: Context<ServiceEnv>) => {
    const parsed = parseOhlcvParameters(queryOf(c));
    if (!parsed.ok) return refuse(c, 400, parsed.message);
    const { start, ...query } = parsed.value;
    const wall = access.refuseHistory(c.var.plan, query.interval, start);
    if (wall !== null) return refuse(c, 402, wall);
    return answerWritten(c, writeOhlcvRows((await data.ohlcv({ ...query, coinId: coinIdOf(c) })) ?? []));
  };

  /** One daily candle, which every plan may see. */
  const oneDay = (openTime: () => Instant) => async (c: Context<ServiceEnv>) => {
    const quote = parseQuote(c.req.query('quote') ?? null);
    if (!quote.ok) return refuse(c, 400, quote.message);
    const at = openTime();
    const query = { coinId: coinIdOf(c), quote: quote.value, interval: '24h', from: at, to: at, limit: 1 } as const;
    return answerWritten(c, writeOhlcvRows((await data.ohlcv(query)) ?? []));
  };

  const today = () => floorToGrid(clock.now(), '24h');
  const paths: readonly [string, (c: Context<ServiceEnv>) => Promise<Response>][] = [
    ['/coins/:id/ohlcv', historical],
    ['/coins/:id/ohlcv/historical', historical],
    ['/coins/:id/ohlcv/latest', oneDay(() => today() - DAY)],
    ['/coins/:id/ohlcv/today', oneDay(today)],
  ];
  for (const [path, answer] of paths) {
    routes.on(['GET', 'POST'], path, async (c) => {
      const { pathname, search } = new URL(c.req.url);
      return pathname.endsWith('/') ? redirect(c, pathname.slice(0, -1) + search) : answer(c);
    });
  }
  return routes;
}

function coinIdOf(c: Context<ServiceEnv>): string {
  return c.req.param('id') ?? '';
}

function queryOf(c: Context<ServiceEnv>): URLSearchParams {
  const at = c.req.url.indexOf('?');
  return new URLSearchParams(at < 0 ? '' : c.req.url.slice(at + 1));
}
