/** Tags and their coins. An answer about a tag has all its coins; an answer about a coin has its tags, too. */
import { max } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import type { CoinDetails, Tag } from '../../contract/record/catalogue.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { matches, tables } from '../connection/tables.ts';
import { coinTag, tag } from '../schema/catalogue.ts';
import { storeList, type UpstreamList, writeVersions } from './catalogue-rows.ts';
import { plainInteger, plainKey, plainText } from './column-values.ts';

/** Stores the tags, in the order of their list. */
export async function writeTags(sql: SqlOrTransaction, { rows: tags, at, isWhole }: UpstreamList<Tag>): Promise<void> {
  await storeList(sql, tag, { of: null, rows: tags.map(rowOf), at, isWhole });
  await writeMembers(sql, tags, at);
}

/** Stores one tag that was requested alone. */
export async function writeTag(sql: SqlOrTransaction, given: Tag, at: Instant): Promise<void> {
  const places = tables(sql);
  const [known] = await places
    .select({ place: tag.place })
    .from(tag)
    .where(matches(tag, { id: given.id }));
  const [last] = await places.select({ place: max(tag.place) }).from(tag);
  const row = rowOf(given, known?.place ?? (last?.place ?? -1) + 1);
  await storeList(sql, tag, { of: null, rows: [row], at, isWhole: false });
  await writeMembers(sql, [given], at);
}

/** Stores the tags in an answer about a coin. If they contradict the answer about a tag, the tag's answer counts. */
export async function hintTags(sql: SqlOrTransaction, coin: CoinDetails, at: Instant): Promise<void> {
  const rows = (coin.tags ?? []).map(({ id }) => ({ coinId: coin.id, tagId: plainKey(id) }));
  await writeVersions(sql, coinTag, { rows, at, whole: null, isHint: true });
}

function rowOf(given: Tag, place: number) {
  return {
    id: given.id,
    place,
    name: given.name,
    type: plainText(given.type),
    description: plainText(given.description),
    coins: plainInteger(given.coin_counter),
    icos: plainInteger(given.ico_counter),
  };
}

async function writeMembers(sql: SqlOrTransaction, tags: readonly Tag[], at: Instant): Promise<void> {
  // A tag without a list of coins proves nothing about its coins.
  const given = tags.flatMap(({ id, coins }) => (coins == null ? [] : [{ id, coins }]));
  if (given.length === 0) return;
  const rows = given.flatMap(({ id, coins }) => coins.map((coin) => ({ coinId: plainKey(coin), tagId: id })));
  await writeVersions(sql, coinTag, { rows, at, whole: { column: coinTag.tagId, values: given.map(({ id }) => id) } });
}
