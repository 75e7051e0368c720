/** People of the coins that are kept. */
import type { Instant } from '../clock.ts';
import type { Person } from '../contract/catalogue.ts';
import type { SqlOrTransaction } from './connect.ts';
import { plainInteger, plainText } from './plain.ts';
import { hintPositions } from './position.ts';
import { storableText } from './storable.ts';

/** Of an answer that is the youngest about this person. */
export async function writePerson(sql: SqlOrTransaction, person: Person, at: Instant): Promise<void> {
  await sql`
    insert into market.person (id, as_of, name, description, teams)
    values (${person.id}, to_timestamp(${at / 1000}), ${storableText(person.name)}, ${plainText(person.description)},
      ${plainInteger(person.teams_count)})
    on conflict (id) do update
    set as_of = excluded.as_of, name = excluded.name, description = excluded.description, teams = excluded.teams`;
  await hintPositions(sql, person.id, person.positions ?? [], at);
}
