/** Events of coins: what upstream no longer lists is marked as gone. */
import type { Instant } from '../../clock.ts';
import type { CoinEvent } from '../../contract/record/catalogue.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { plainKey, plainText, plainTime } from './column-values.ts';
import { keepListed, type ListedTable } from './soft-deleted-list.ts';

const EVENTS: ListedTable = {
  table: 'coin_event',
  scope: 'coin_id',
  keys: ['coin_id', 'id'],
  values: ['date', 'date_to', 'name', 'description', 'is_conference', 'link', 'proof_image_link'],
};

/** Those of a coin, each with a date that can be read. */
export async function writeCoinEvents(
  sql: SqlOrTransaction,
  {
    coinId,
    events,
    at,
    isWhole,
  }: {
    readonly coinId: string;
    readonly events: readonly CoinEvent[];
    readonly at: Instant;
    readonly isWhole: boolean;
  },
): Promise<void> {
  const rows = events.map((event) => ({
    coin_id: coinId,
    id: plainKey(event.id),
    date: plainTime(event.date),
    date_to: plainTime(event.date_to),
    name: event.name,
    description: plainText(event.description),
    is_conference: event.is_conference ?? null,
    link: plainText(event.link),
    proof_image_link: plainText(event.proof_image_link),
  }));
  await keepListed(sql, EVENTS, { of: coinId, rows, at, isWhole });
}
