import { testAttestedPrices } from './attest-prices.ts';

testAttestedPrices(['prices-1d']);
