import { testLies } from './lies-anywhere.ts';

/** In these, a false candle lies at both ends of a true answer, or two lies agree. */
testLies([146], 'candles');
testLies([1, 2], 'prices');
