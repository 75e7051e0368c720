/** Contracts of coins: one row for each period in which the upstream reports the same about a contract. */
import type { PlatformContract } from '../../contract/record/catalogue.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { contract } from '../schema/catalogue.ts';
import { type UpstreamList, writeVersions } from './catalogue-rows.ts';
import { plainKey, plainText } from './column-values.ts';

/** Stores the contracts of a platform. */
export async function writeContracts(
  sql: SqlOrTransaction,
  platformId: string,
  { rows: contracts, at, isWhole }: UpstreamList<PlatformContract>,
): Promise<void> {
  const rows = contracts.map(({ address, id, type, active }) => ({
    platformId,
    address: plainKey(address),
    coinId: plainKey(id),
    type: plainText(type),
    isActive: active ?? null,
  }));
  const whole = isWhole ? { column: contract.platformId, values: [platformId] } : null;
  await writeVersions(sql, contract, { rows, at, whole });
}

/** The coin of a contract; null when there is none. Hexadecimal addresses match in any case. Active coins come first, then newer ones. */
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
