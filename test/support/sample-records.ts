/** Records as the upstream and the store have them, for tests that need any valid one. */
import type { SavedAccount } from '../../src/store/quota/account.ts';

/** An entry of the list of coins. */
export const BTC = {
  id: 'btc-bitcoin',
  name: 'Bitcoin',
  symbol: 'BTC',
  rank: 1,
  is_new: false,
  is_active: true,
  type: 'coin',
};

export const ANONYMOUS: SavedAccount = {
  id: 'anonymous@example',
  origin: 'https://example',
  plan: 'free',
  authScheme: null,
  accountPath: null,
  checkedAt: null,
  monthLimit: null,
};
