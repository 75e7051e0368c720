/**
 * Finds the coins in a statement that are no ids. A view cannot raise an error: `coin_id = 'BTC'` finds no row without any message, and a
 * count or a sum of it looks like an answer.
 */
import { createClient } from '../../store/connection/connect.ts';

/** Matches `coin_id = 'BTC'` and `c.coin_id in ('BTC', 'ETH')`, but not `coin_id like …`. */
const NAMED = /\bcoin_id"?\s*(?:=\s*(?:any\s*\(\s*(?:array\s*\[|'\{))?|in\s*\()\s*((?:'(?:[^']|'')*'\s*,?\s*)+)/gi;
const LITERAL = /'((?:[^']|'')*)'/g;
const MOST = 5;

/** The names that a statement compares with coin ids. */
export function coinsNamed(statement: string): string[] {
  const names = [...statement.matchAll(NAMED)].flatMap(([, list]) =>
    [...list!.matchAll(LITERAL)].map(([, name]) => name!.replaceAll("''", "'")),
  );
  return [...new Set(names)].slice(0, MOST);
}

/** One sentence for each name that is no id. It uses a separate connection, because the user's may be in a transaction. */
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
