/** People and their positions in the teams of coins. An answer about a coin has its whole team; one about a person also has untracked coins. */
import type { Instant } from '../../clock.ts';
import type { CoinDetails, Person } from '../../contract/record/catalogue.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { tables } from '../connection/tables.ts';
import { person, position } from '../schema/catalogue.ts';
import { storableText } from '../values/storable-text.ts';
import { writeVersions } from './catalogue-rows.ts';
import { plainInteger, plainKey, plainText } from './column-values.ts';

/** Stores a person from the newest answer about them. If it contradicts the team in the answer about a coin, the coin's answer counts. */
export async function writePerson(sql: SqlOrTransaction, told: Person, at: Instant): Promise<void> {
  const { id } = told;
  const values = {
    asOf: at,
    name: storableText(told.name),
    description: plainText(told.description),
    teams: plainInteger(told.teams_count),
  };
  await tables(sql)
    .insert(person)
    .values({ id, ...values })
    .onConflictDoUpdate({ target: person.id, set: values });
  const rows = (told.positions ?? []).map((held) => ({
    coinId: plainKey(held.coin_id),
    personId: id,
    position: plainKey(held.position),
  }));
  await writeVersions(sql, position, { rows, at, whole: null, isHint: true });
}

/** Stores the whole team of a coin. */
export async function writeTeam(sql: SqlOrTransaction, coin: CoinDetails, at: Instant): Promise<void> {
  const rows = (coin.team ?? []).map((member) => ({
    coinId: coin.id,
    personId: plainKey(member.id),
    position: plainKey(member.position),
  }));
  await writeVersions(sql, position, { rows, at, whole: { column: position.coinId, values: [coin.id] } });
}
