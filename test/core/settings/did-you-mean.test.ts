import { describe, expect, test } from 'vitest';
import { didYouMean, nearestNames } from '../../../src/core/settings/did-you-mean.ts';

describe('nearestNames', () => {
  test('finds a name that differs by one letter, and ignores case and dashes', () => {
    expect(nearestNames('chandler-apikey', ['CHANDLER_API_KEY', 'CHANDLER_PLAN'])).toEqual(['CHANDLER_API_KEY']);
  });

  test('returns the nearest names first, and no more than the limit', () => {
    const ids = ['btc-bitcoin', 'bch-bitcoin-cash', 'btcb-bitcoin-bep2', 'btc-bitcoins'];
    expect(nearestNames('btc-bitcion', ids, 2)).toEqual(['btc-bitcoin', 'btc-bitcoins']);
  });

  test('proposes nothing when no name is near', () => {
    expect(nearestNames('weather', ['btc-bitcoin', 'eth-ethereum'])).toEqual([]);
    expect(nearestNames('', ['a'])).toEqual([]);
    expect(didYouMean('weather', ['btc-bitcoin'])).toBe('');
  });

  test('puts the proposal into words that can end a message', () => {
    expect(didYouMean('backfil', ['backfill', 'status'])).toBe(' (did you mean backfill?)');
  });
});
