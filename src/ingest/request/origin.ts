/** Keeps simulated and real data out of the same warehouse: afterwards they could not be told apart. */
import type { Sql } from '../../store/connection/connect.ts';
import { type FetchRow, recordFetchOnce } from '../../store/work/fetch.ts';
import { claimOrigin } from '../../store/work/installation.ts';
import type { Exchange } from '../../upstream/answer.ts';
import { ConfigurationError } from '../outcome.ts';
import { otherOrigin } from './configuration-errors.ts';
import { type OutageRetry, withoutRetry } from './outage-retry.ts';

type OriginOptions = {
  /** Waits for a database that is unavailable. */
  readonly retry?: OutageRetry;
  /** The setting that holds the address of the request. */
  readonly setting?: 'CHANDLER_BASE_URL' | 'CHANDLER_RPC_URL';
};

/**
 * Called before an answer is stored. The first answer decides which market the warehouse holds. An answer of another market is recorded as
 * malformed. @throws ConfigurationError
 */
export type OriginCheck = (exchange: Exchange, record: FetchRow, options?: OriginOptions) => Promise<void>;

export function createOriginCheck(sql: Sql): OriginCheck {
  /** The market never changes once it is decided; undefined: not read yet. */
  let held: string | null | undefined;
  return async ({ simulator }, record, { retry = withoutRetry, setting = 'CHANDLER_BASE_URL' } = {}) => {
    if (held === undefined) held = await retry(() => claimOrigin(sql, simulator));
    if (held === simulator) return;
    const message = otherOrigin(held, simulator, setting);
    await retry((again) => recordFetchOnce(sql, { ...record, outcome: 'malformed', message }, again));
    throw new ConfigurationError(message);
  };
}
