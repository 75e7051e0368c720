/** Contracts of coins: a row for as long as upstream says the same of one. */
import type { Instant } from '../../clock.ts';
import type { PlatformContract } from '../../contract/record/catalogue.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { plainKey, plainText } from './column-values.ts';
import { type VersionedTable, writeVersions } from './row-versions.ts';

const CONTRACTS: VersionedTable = {
  table: 'contract',
  keys: ['platform_id', 'address', 'coin_id'],
  values: ['type', 'is_active'],
};

/** Those of a platform; with `isWhole` what it leaves out has ended. */
export async function writeContracts(
  sql: SqlOrTransaction,
  {
    platformId,
    contracts,
    at,
    isWhole,
  }: {
    readonly platformId: string;
    readonly contracts: readonly PlatformContract[];
    readonly at: Instant;
    readonly isWhole: boolean;
  },
): Promise<void> {
  const rows = contracts.map(({ address, id, type, active }) => ({
    platform_id: platformId,
    address: plainKey(address),
    coin_id: plainKey(id),
    type: plainText(type),
    is_active: active ?? null,
  }));
  const whole = isWhole ? { column: 'platform_id', values: [platformId] } : null;
  await writeVersions(sql, CONTRACTS, { rows, at, whole });
}

/** The coin behind a contract, hexadecimal addresses in any case; null when there is none. Of several the one that is active, told last. */
export async function coinOfContract(
  sql: SqlOrTransaction,
  { platformId, address }: { readonly platformId: string; readonly address: string },
): Promise<string | null> {
  const isHexadecimal = /^0x[\da-f]+$/i.test(address);
  const [row] = await sql<{ coinId: string }[]>`
    select coin_id from market.contract
    where platform_id = ${platformId} and lower(address) = lower(${plainKey(address)}) and valid_to is null
      and ${isHexadecimal ? sql`true` : sql`address = ${plainKey(address)}`}
    order by is_active is not false desc, valid_from desc, coin_id limit 1`;
  return row?.coinId ?? null;
}
