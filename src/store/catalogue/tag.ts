/** Tags, and who has one. A tag tells of all its coins; a coin tells of its tags, too. */
import { max } from 'drizzle-orm';
import type { Instant } from '../../clock.ts';
import type { CoinDetails, Tag } from '../../contract/record/catalogue.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { matches, tables } from '../connection/tables.ts';
import { coinTag, tag } from '../schema/catalogue.ts';
import { keepListed, type ToldList, writeVersions } from './catalogue-rows.ts';
import { plainInteger, plainKey, plainText } from './column-values.ts';

/** The list of tags, in its order. */
export async function writeTags(sql: SqlOrTransaction, { rows: tags, at, isWhole }: ToldList<Tag>): Promise<void> {
  await keepListed(sql, tag, { of: null, rows: tags.map(rowOf), at, isWhole });
  await writeMembers(sql, tags, at);
}

/** One tag, requested alone. */
export async function writeTag(sql: SqlOrTransaction, told: Tag, at: Instant): Promise<void> {
  const places = tables(sql);
  const [known] = await places
    .select({ place: tag.place })
    .from(tag)
    .where(matches(tag, { id: told.id }));
  const [last] = await places.select({ place: max(tag.place) }).from(tag);
  const row = rowOf(told, known?.place ?? (last?.place ?? -1) + 1);
  await keepListed(sql, tag, { of: null, rows: [row], at, isWhole: false });
  await writeMembers(sql, [told], at);
}

/** The tags that a coin lists. Where they contradict what a tag says of its coins, the tag is right. */
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
  // A tag without a list of coins says nothing about its coins.
  const told = tags.flatMap(({ id, coins }) => (coins == null ? [] : [{ id, coins }]));
  if (told.length === 0) return;
  const rows = told.flatMap(({ id, coins }) => coins.map((coin) => ({ coinId: plainKey(coin), tagId: id })));
  await writeVersions(sql, coinTag, { rows, at, whole: { column: coinTag.tagId, values: told.map(({ id }) => id) } });
}
