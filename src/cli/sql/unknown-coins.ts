/**
 * The coins that a statement names: which of them are no ids. A view cannot raise an error, so `coin_id = 'BTC'` finds no row and says nothing, and
 * a count or a sum of it looks like an answer.
 */
import { createClient } from '../../store/connection/connect.ts';

/** `coin_id = 'BTC'`, `c.coin_id in ('BTC', 'ETH')`, `coin_id like …` (which is none). */
const NAMED = /\bcoin_id"?\s*(?:=\s*(?:any\s*\(\s*(?:array\s*\[|'\{))?|in\s*\()\s*((?:'(?:[^']|'')*'\s*,?\s*)+)/gi;
const LITERAL = /'((?:[^']|'')*)'/g;
const MOST = 5;

/** The names that a statement compares with ids of coins. */
export function coinsNamed(statement: string): string[] {
  const names = [...statement.matchAll(NAMED)].flatMap(([, list]) =>
    [...list!.matchAll(LITERAL)].map(([, name]) => name!.replaceAll("''", "'")),
  );
  return [...new Set(names)].slice(0, MOST);
}

/** One sentence for each name that is no id. Asked on a connection of its own: the user's may be in a transaction. */
export async function noteUnknownCoins(url: string, statement: string): Promise<string[]> {
  const names = coinsNamed(statement);
  if (names.length === 0) return [];
  const sql = createClient({ url, max: 1, applicationName: 'chandler sql' });
  try {
    const notes: string[] = [];
    for (const name of names) {
      const [known] = await sql`select from market.coin where id = ${name}`;
      if (known !== undefined) continue;
      const note = await sql<{ id: string }[]>`select market.coin_of(${name}) as id`.then(
        ([row]) => `no coin has the id ${name}; it is a name of ${row!.id}`,
        ({ message, hint }: { readonly message: string; readonly hint?: string }) => `${message}. ${hint ?? ''}`.trim(),
      );
      notes.push(note);
    }
    return notes;
  } finally {
    await sql.end({ timeout: 1 });
  }
}
