/** People of the coins that are kept. */
import type { Instant } from '../../clock.ts';
import type { Person } from '../../contract/record/catalogue.ts';
import type { SqlOrTransaction } from '../connection/connect.ts';
import { storableText } from '../connection/storable-text.ts';
import { plainInteger, plainText } from './column-values.ts';
import { hintPositions } from './position.ts';

/** Of an answer that is the youngest about this person. */
export async function writePerson(sql: SqlOrTransaction, person: Person, at: Instant): Promise<void> {
  await sql`
    insert into market.person (id, as_of, name, description, teams)
    values (${person.id}, ${at}, ${storableText(person.name)}, ${plainText(person.description)},
      ${plainInteger(person.teams_count)})
    on conflict (id) do update
    set as_of = excluded.as_of, name = excluded.name, description = excluded.description, teams = excluded.teams`;
  await hintPositions(sql, person.id, person.positions ?? [], at);
}
