/** All datasets, by the names that `--what` takes. */
import { CATALOGUE, EXCHANGES } from './catalogue-datasets.ts';
import type { Dataset } from './dataset.ts';
import { HISTORIES } from './history-datasets.ts';
import { CANDLES, PRICES } from './series-datasets.ts';
import { OF_COINS, OF_SERIES } from './table-datasets.ts';

/** In the order in which they are written. */
export const DATASETS: readonly Dataset[] = [
  CANDLES,
  PRICES,
  ...HISTORIES,
  ...OF_COINS,
  ...OF_SERIES,
  ...CATALOGUE,
  ...EXCHANGES,
];

export const DATASET_NAMES: readonly string[] = DATASETS.map(({ name }) => name);

/** @throws Error when no dataset has this name */
export function datasetNamed(name: string): Dataset {
  const found = DATASETS.find((one) => one.name === name);
  if (found === undefined) throw new Error(`there is no dataset ${name}`);
  return found;
}
