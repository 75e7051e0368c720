import { testLies } from './lies-anywhere.ts';

/** In these, a false candle lies at both ends of a true answer, or two lies agree. */
testLies([144, 146, 156, 162, 164, 168], 'candles');
testLies([1, 2, 3, 4, 5, 6], 'prices');
