/** The tables of candles that are made ahead of time, as drizzle sees them (see `rollup.ts`). */
import { doublePrecision, integer, primaryKey } from 'drizzle-orm/pg-core';
import { candleInterval, instant, market, series, tstzmultirange } from './schema.ts';

export const rollup = market.table(
  'rollup',
  {
    seriesId: integer('series_id')
      .notNull()
      .references(() => series.id, { onDelete: 'cascade' }),
    interval: candleInterval('interval').notNull(),
    openTime: instant('open_time').notNull(),
    open: doublePrecision('open'),
    high: doublePrecision('high'),
    low: doublePrecision('low'),
    close: doublePrecision('close'),
    volume: doublePrecision('volume'),
    marketCap: doublePrecision('market_cap'),
  },
  (t) => [primaryKey({ columns: [t.seriesId, t.interval, t.openTime] })],
);

export const rolled = market.table('rolled', {
  seriesId: integer('series_id')
    .primaryKey()
    .references(() => series.id, { onDelete: 'cascade' }),
  spans: tstzmultirange('spans').notNull(),
});
