import { testLies } from './lies-anywhere.ts';

const SEEDS = Array.from({ length: 60 }, (_, i) => i + 1);
testLies(SEEDS, 'candles');
testLies(SEEDS.slice(0, 30), 'prices');
