/** Tags, and who has one. A tag tells of all its coins; a coin tells of its tags, too. */
import type { Instant } from '../../clock.ts';
import type { Tag } from '../../contract/record/catalogue.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { plainInteger, plainKey, plainText } from './column-values.ts';
import { type VersionedTable, writeVersions } from './row-versions.ts';
import { keepListed, type ListedTable } from './soft-deleted-list.ts';

const TAGS: ListedTable = {
  table: 'tag',
  scope: null,
  keys: ['id'],
  values: ['place', 'name', 'type', 'description', 'coins', 'icos'],
};
const MEMBERS: VersionedTable = { table: 'coin_tag', keys: ['coin_id', 'tag_id'], values: [] };

/** The list of tags; with `isWhole` those that it leaves out are gone. */
export async function writeTags(
  sql: SqlOrTransaction,
  { tags, at, isWhole }: { readonly tags: readonly Tag[]; readonly at: Instant; readonly isWhole: boolean },
): Promise<void> {
  const rows = tags.map((tag, place) => rowOf(tag, place));
  await keepListed(sql, TAGS, { of: null, rows, at, isWhole });
  await writeMembers(sql, tags, at);
}

/** One tag, asked about alone. */
export async function writeTag(sql: SqlOrTransaction, tag: Tag, at: Instant): Promise<void> {
  const [known] = await sql<{ place: number }[]>`select place from market.tag where id = ${tag.id}`;
  const [last] = await sql<{ place: number }[]>`select coalesce(max(place) + 1, 0) as place from market.tag`;
  const rows = [rowOf(tag, known?.place ?? last!.place)];
  await keepListed(sql, TAGS, { of: null, rows, at, isWhole: false });
  await writeMembers(sql, [tag], at);
}

/** What a coin says: where that is not what the tag says of its coins, the tag is right. */
export async function hintTags(
  sql: SqlOrTransaction,
  coinId: string,
  tagIds: readonly string[],
  at: Instant,
): Promise<void> {
  const rows = tagIds.map((id) => ({ coin_id: coinId, tag_id: plainKey(id) }));
  await writeVersions(sql, MEMBERS, { rows, at, whole: null, isHint: true });
}

function rowOf(tag: Tag, place: number) {
  return {
    id: tag.id,
    place,
    name: tag.name,
    type: plainText(tag.type),
    description: plainText(tag.description),
    coins: plainInteger(tag.coin_counter),
    icos: plainInteger(tag.ico_counter),
  };
}

async function writeMembers(sql: SqlOrTransaction, tags: readonly Tag[], at: Instant): Promise<void> {
  // Without its coins a tag says nothing of them.
  const told = tags.flatMap(({ id, coins }) => (coins == null ? [] : [{ id, coins }]));
  if (told.length === 0) return;
  const rows = told.flatMap(({ id, coins }) => coins.map((coin) => ({ coin_id: plainKey(coin), tag_id: id })));
  await writeVersions(sql, MEMBERS, { rows, at, whole: { column: 'tag_id', values: told.map(({ id }) => id) } });
}
