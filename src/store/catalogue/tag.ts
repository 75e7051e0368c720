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
export async function writeTag(sql: SqlOrTransaction, told: Tag, at: Instant): Promise<void> {
  const places = tables(sql);
  const [known] = await places
    .select({ place: tag.place })
    .from(tag)
    .where(matches(tag, { id: told.id }));
  const [last] = await places.select({ place: max(tag.place) }).from(tag);
  const row = rowOf(told, known?.place ?? (last?.place ?? -1) + 1);
  await storeList(sql, tag, { of: null, rows: [row], at, isWhole: false });
  await writeMembers(sql, [told], at);
}

/** Stores the tags in an answer about a coin. If they contradict the answer about a tag, the tag's answer counts. */
export async function hintTags(sql: SqlOrTransaction, coin: CoinDetails, at: Instant): Promise<void> {
  const rows = (coin.tags ?? []).map(({ id }) => ({ coinId: coin.id, tagId: plainKey(id) }));
  await writeVersions(sql, coinTag, { rows, at, whole: null, isHint: true });
}

function rowOf(told: Tag, place: number) {
  return {
    id: told.id,
    place,
    name: told.name,
    type: plainText(told.type),
    description: plainText(told.description),
    coins: plainInteger(told.coin_counter),
    icos: plainInteger(told.ico_counter),
  };
}

async function writeMembers(sql: SqlOrTransaction, tags: readonly Tag[], at: Instant): Promise<void> {
  // A tag without a list of coins proves nothing about its coins.
  const told = tags.flatMap(({ id, coins }) => (coins == null ? [] : [{ id, coins }]));
  if (told.length === 0) return;
  const rows = told.flatMap(({ id, coins }) => coins.map((coin) => ({ coinId: plainKey(coin), tagId: id })));
  await writeVersions(sql, coinTag, { rows, at, whole: { column: coinTag.tagId, values: told.map(({ id }) => id) } });
}
