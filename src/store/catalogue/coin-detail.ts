/** What upstream tells of a coin beyond its price: one row for each coin, its links, and hints at its tags and its people. */
import type { Instant } from '../../clock.ts';
import type { CoinDetails } from '../../contract/record/catalogue.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { storableJson } from '../connection/storable-text.ts';
import { plainKey, plainText, plainTime } from './column-values.ts';
import { writeTeam } from './position.ts';
import { type VersionedTable, writeVersions } from './row-versions.ts';
import type { Row } from './soft-deleted-list.ts';
import { hintTags } from './tag.ts';

const LINKS: VersionedTable = { table: 'coin_link', keys: ['coin_id', 'kind', 'url'], values: [] };

/** Of an answer that is the youngest about this coin. */
export async function writeCoinDetail(sql: SqlOrTransaction, coin: CoinDetails, at: Instant): Promise<void> {
  await sql`
    insert into market.coin_detail select * from json_populate_record(null::market.coin_detail, ${storableJson(rowOf(coin, at))}::text::json)
    on conflict (coin_id) do update
    set as_of = excluded.as_of, name = excluded.name, symbol = excluded.symbol, type = excluded.type, is_active = excluded.is_active,
      parent_id = excluded.parent_id, description = excluded.description, message = excluded.message,
      open_source = excluded.open_source, hardware_wallet = excluded.hardware_wallet, started_at = excluded.started_at,
      development_status = excluded.development_status, proof_type = excluded.proof_type, org_structure = excluded.org_structure,
      hash_algorithm = excluded.hash_algorithm, platform_id = excluded.platform_id, contract = excluded.contract,
      logo_url = excluded.logo_url, whitepaper_url = excluded.whitepaper_url,
      first_data_at = coalesce(excluded.first_data_at, market.coin_detail.first_data_at),
      last_data_at = coalesce(excluded.last_data_at, market.coin_detail.last_data_at)`;
  await writeVersions(sql, LINKS, { rows: linksOf(coin), at, whole: { column: 'coin_id', values: [coin.id] } });
  await writeTeam(sql, coin.id, coin.team ?? [], at);
  await hintTags(
    sql,
    coin.id,
    (coin.tags ?? []).map((tag) => tag.id),
    at,
  );
}

function rowOf(coin: CoinDetails, at: Instant): Row {
  const [contract] = coin.contracts ?? [];
  return {
    coin_id: coin.id,
    as_of: new Date(at).toISOString(),
    name: coin.name,
    symbol: coin.symbol,
    type: plainText(coin.type),
    is_active: coin.is_active ?? null,
    parent_id: plainText(coin.parent?.id),
    description: plainText(coin.description),
    message: plainText(coin.message),
    open_source: coin.open_source ?? null,
    hardware_wallet: coin.hardware_wallet ?? null,
    started_at: plainTime(coin.started_at),
    development_status: plainText(coin.development_status),
    proof_type: plainText(coin.proof_type),
    org_structure: plainText(coin.org_structure),
    hash_algorithm: plainText(coin.hash_algorithm),
    platform_id: plainText(coin.platform ?? contract?.platform),
    contract: plainText(coin.contract ?? contract?.contract),
    logo_url: plainText(coin.logo),
    whitepaper_url: plainText(coin.whitepaper?.link),
    first_data_at: plainTime(coin.first_data_at),
    last_data_at: plainTime(coin.last_data_at),
  };
}

/** Both ways in which upstream lists them; the second has kinds and addresses that the first has not. */
function linksOf(coin: CoinDetails): Row[] {
  const plain = Object.entries(coin.links ?? {}).flatMap(([kind, urls]) => (urls ?? []).map((url) => ({ kind, url })));
  const extended = (coin.links_extended ?? []).map(({ type, url }) => ({ kind: type ?? '', url: url ?? '' }));
  return [...plain, ...extended]
    .filter(({ url }) => url !== '')
    .map(({ kind, url }) => ({ coin_id: coin.id, kind: plainKey(kind), url: plainKey(url) }));
}
