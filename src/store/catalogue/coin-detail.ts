/** The details of a coin besides its prices: one row for each coin, its links, its team, and its tags. */
import { sql as raw } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import type { CoinDetails } from '../../contract/record/catalogue.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { tables } from '../connection/tables.ts';
import { coinDetail, coinLink } from '../schema/catalogue.ts';
import { storableText } from '../values/storable-text.ts';
import { writeVersions } from './catalogue-rows.ts';
import { plainKey, plainText, plainTime } from './column-values.ts';
import { writeTeam } from './person.ts';
import { hintTags } from './tag.ts';

/** Stores the details from the newest answer about this coin. */
export async function writeCoinDetail(sql: SqlOrTransaction, coin: CoinDetails, at: Instant): Promise<void> {
  const values = valuesOf(coin, at);
  const known = {
    firstDataAt: raw`coalesce(excluded.first_data_at, ${coinDetail.firstDataAt})`,
    lastDataAt: raw`coalesce(excluded.last_data_at, ${coinDetail.lastDataAt})`,
  };
  await tables(sql)
    .insert(coinDetail)
    .values({ coinId: coin.id, ...values })
    .onConflictDoUpdate({ target: coinDetail.coinId, set: { ...values, ...known } });
  const whole = { column: coinLink.coinId, values: [coin.id] };
  await writeVersions(sql, coinLink, { rows: linksOf(coin), at, whole });
  await writeTeam(sql, coin, at);
  await hintTags(sql, coin, at);
}

function valuesOf(coin: CoinDetails, at: Instant) {
  const [contract] = coin.contracts ?? [];
  return {
    asOf: at,
    name: storableText(coin.name),
    symbol: storableText(coin.symbol),
    type: plainText(coin.type),
    isActive: coin.is_active ?? null,
    parentId: plainText(coin.parent?.id),
    description: plainText(coin.description),
    message: plainText(coin.message),
    openSource: coin.open_source ?? null,
    hardwareWallet: coin.hardware_wallet ?? null,
    startedAt: plainTime(coin.started_at),
    developmentStatus: plainText(coin.development_status),
    proofType: plainText(coin.proof_type),
    orgStructure: plainText(coin.org_structure),
    hashAlgorithm: plainText(coin.hash_algorithm),
    platformId: plainText(coin.platform ?? contract?.platform),
    contract: plainText(coin.contract ?? contract?.contract),
    logoUrl: plainText(coin.logo),
    whitepaperUrl: plainText(coin.whitepaper?.link),
    firstDataAt: plainTime(coin.first_data_at),
    lastDataAt: plainTime(coin.last_data_at),
  };
}

/** The upstream lists links in two fields; the second has kinds and addresses that the first does not have. */
function linksOf(coin: CoinDetails) {
  const plain = Object.entries(coin.links ?? {}).flatMap(([kind, urls]) => (urls ?? []).map((url) => ({ kind, url })));
  const extended = (coin.links_extended ?? []).map(({ type, url }) => ({ kind: type ?? '', url: url ?? '' }));
  return [...plain, ...extended]
    .filter(({ url }) => url !== '')
    .map(({ kind, url }) => ({ coinId: coin.id, kind: plainKey(kind), url: plainKey(url) }));
}
