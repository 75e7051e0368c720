import { testLies } from './lies-anywhere.ts';

/** In the last six, a false candle lies at both ends of a true answer, or two lies agree. */
const SEEDS = [...Array.from({ length: 30 }, (_, i) => i + 1), 144, 146, 156, 162, 164, 168];
testLies(SEEDS, 'candles');
testLies(SEEDS.slice(0, 15), 'prices');
