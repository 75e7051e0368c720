/** The two datasets of series. `c` are stored rows, `s` is their series. */
import { columnsOf, type DatasetColumn, type SeriesDataset, type SourceColumn } from './dataset.ts';

/** The columns that name the series of a row. In a file with only one interval and quote, the place of the file gives these two. */
const SERIES = columnsOf(`
  coin_id text = s.coin_id
  quote text = s.quote
  interval text = replace(s.interval::text, 'prices-', '')
`);

/** The columns for interval and quote, which only a file of many intervals has. */
export const IN_PLACE: ReadonlySet<string> = new Set(['quote', 'interval']);

export const CANDLES: SeriesDataset = {
  kind: 'series',
  name: 'candles',
  time: 'open_time',
  columns: [
    ...SERIES,
    ...columnsOf(`
      open_time instant = c.open_time
      open double? = c.open
      high double? = c.high
      low double? = c.low
      close double? = c.close
      volume double? = c.volume
      market_cap double? = c.market_cap
      is_final boolean = s.covered @> c.open_time
    `),
  ],
};

export const PRICES: SeriesDataset = {
  kind: 'series',
  name: 'prices',
  time: 'time',
  columns: [
    ...SERIES,
    ...columnsOf(`
      time instant = c.open_time
      price double? = c.close
      volume_24h double? = c.volume
      market_cap double? = c.market_cap
      is_final boolean = s.covered @> c.open_time
    `),
  ],
};

/** The columns of a file. `hasPlace`: the place of the file gives interval and quote. */
export function columnsIn<Columns extends DatasetColumn | SourceColumn>(
  columns: readonly Columns[],
  hasPlace: boolean,
): Columns[] {
  return hasPlace ? columns.filter(({ name }) => !IN_PLACE.has(name)) : [...columns];
}
