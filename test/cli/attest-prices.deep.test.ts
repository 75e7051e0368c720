import { testAttestedPrices } from './attest-prices.ts';

testAttestedPrices(['prices-7d', 'prices-6h']);
