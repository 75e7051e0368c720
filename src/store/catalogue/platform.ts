/** Chains that contracts of coins live on. */
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { keepListed, type ListedTable } from './soft-deleted-list.ts';

const PLATFORMS: ListedTable = { table: 'platform', scope: null, keys: ['id'], values: ['place'] };

export async function writePlatforms(
  sql: SqlOrTransaction,
  { ids, at, isWhole }: { readonly ids: readonly string[]; readonly at: Instant; readonly isWhole: boolean },
): Promise<void> {
  await keepListed(sql, PLATFORMS, { of: null, rows: ids.map((id, place) => ({ id, place })), at, isWhole });
}

/** Those that are listed, in the order of their list. */
export async function readPlatforms(sql: SqlOrTransaction): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`select id from market.platform where gone_at is null order by place, id`;
  return rows.map((row) => row.id);
}
