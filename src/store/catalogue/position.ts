/** Who belongs to which coin, as what. A coin tells of its whole team; a person tells of coins that nobody has asked about, too. */
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { plainKey } from './column-values.ts';
import { type VersionedTable, writeVersions } from './row-versions.ts';

const POSITIONS: VersionedTable = { table: 'position', keys: ['coin_id', 'person_id', 'position'], values: [] };

type Member = { readonly id: string; readonly position?: string | null | undefined };

/** All of a coin. */
export async function writeTeam(
  sql: SqlOrTransaction,
  coinId: string,
  team: readonly Member[],
  at: Instant,
): Promise<void> {
  const rows = team.map(({ id, position }) => ({
    coin_id: coinId,
    person_id: plainKey(id),
    position: plainKey(position),
  }));
  await writeVersions(sql, POSITIONS, { rows, at, whole: { column: 'coin_id', values: [coinId] } });
}

/** What a person says: where that is not what the coin says of its team, the coin is right. */
export async function hintPositions(
  sql: SqlOrTransaction,
  personId: string,
  positions: readonly { readonly coin_id: string; readonly position?: string | null | undefined }[],
  at: Instant,
): Promise<void> {
  const rows = positions.map(({ coin_id, position }) => ({
    coin_id: plainKey(coin_id),
    person_id: personId,
    position: plainKey(position),
  }));
  await writeVersions(sql, POSITIONS, { rows, at, whole: null, isHint: true });
}
