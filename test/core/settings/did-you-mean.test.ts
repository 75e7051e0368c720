import { describe, expect, test } from 'vitest';
import { didYouMean, nearestNames } from '../../../src/core/settings/did-you-mean.ts';

describe('nearestNames', () => {
  test('finds the name a letter away, whatever its case and dashes', () => {
    expect(nearestNames('chandler-apikey', ['CHANDLER_API_KEY', 'CHANDLER_PLAN'])).toEqual(['CHANDLER_API_KEY']);
  });

  test('puts the nearest first and keeps to the limit', () => {
    const ids = ['btc-bitcoin', 'bch-bitcoin-cash', 'btcb-bitcoin-bep2', 'btc-bitcoins'];
    expect(nearestNames('btc-bitcion', ids, 2)).toEqual(['btc-bitcoin', 'btc-bitcoins']);
  });

  test('proposes nothing when nothing is near', () => {
    expect(nearestNames('weather', ['btc-bitcoin', 'eth-ethereum'])).toEqual([]);
    expect(nearestNames('', ['a'])).toEqual([]);
    expect(didYouMean('weather', ['btc-bitcoin'])).toBe('');
  });

  test('words the proposal so that it ends a message', () => {
    expect(didYouMean('backfil', ['backfill', 'status'])).toBe(' (did you mean backfill?)');
  });
});
