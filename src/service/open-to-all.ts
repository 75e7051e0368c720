/** An `Access` without keys and limits: whoever reaches the service may ask everything. */
import type { Access } from '../contract/access.ts';

export const openToAll: Access = {
  admit: () => ({ kind: 'admitted', plan: 'enterprise' }),
  refuseHistory: () => null,
  refuseTickerHistory: () => null,
  account: () => null,
};
