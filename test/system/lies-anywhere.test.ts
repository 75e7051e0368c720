import { testLies } from './lies-anywhere.ts';

/** In 146, a false candle lies at both ends of a true answer, or two lies agree. In 31, many lies are told that nothing reveals. */
testLies([146, 31], 'candles');
testLies([1, 2], 'prices');
