/** Finds the coins that the rows of an import name. It looks each name up once, and notes the names that mean no coin, or several. */
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { coinNamed, type NamedCoin } from '../../store/imported/imported-series.ts';
import { ImportRefused } from '../refused.ts';
import { MOST_NAMED } from './wrong-rows.ts';

export type CoinNames = {
  /**
   * Null: the name is unknown or ambiguous, so its rows are wrong; `where` names the first row. @throws ImportRefused when there are too many such
   * names
   */
  find(name: string, where: string): Promise<string | null>;
  /** @throws ImportRefused when the name means no coin, or several */
  coinOf(name: string): Promise<string>;
  /** Why the rows with this name are wrong; undefined: they are not. */
  problemOf(name: string): string | undefined;
  /** @throws ImportRefused with all names that mean no coin, unless their rows are left out */
  check(): Promise<void>;
};

/** With more unknown names, the column is not that of the coins. */
const MOST_SKIPPED = 1_000;

export function createCoinNames(sql: SqlOrTransaction, skipsWrong: boolean): CoinNames {
  const known = new Map<string, string>();
  const unknown = new Map<string, Exclude<NamedCoin, { ok: true }> & { readonly where: string }>();
  const look = async (name: string, where: string): Promise<string | null> => {
    const before = known.get(name);
    if (before !== undefined) return before;
    if (unknown.has(name)) return null;
    const found = await coinNamed(sql, name);
    if (found.ok) known.set(name, found.coinId);
    else unknown.set(name, { ...found, where });
    return found.ok ? found.coinId : null;
  };
  const refused = async (): Promise<ImportRefused> => {
    const [first] = unknown.values();
    const noCoins = await hintOfNoCoins(sql);
    if (unknown.size === 1 || noCoins !== null) {
      const hint = noCoins ?? (first!.hint === null ? '' : `. ${first!.hint}`);
      return new ImportRefused(`${first!.where}${first!.problem}${hint}`);
    }
    const named = [...unknown.values()].slice(0, MOST_NAMED);
    const list = named.map(({ where, problem }) => `\n  ${where}${problem}`).join('');
    const count = unknown.size >= MOST_NAMED ? `the first ${MOST_NAMED} of them` : `all ${unknown.size}`;
    return new ImportRefused(
      `rows name coins that this warehouse does not know, or that could be several coins; ${count}:${list}\nCorrect them, or leave their rows out with --skip-wrong`,
    );
  };
  return {
    find: async (name, where) => {
      const found = await look(name, where);
      if (found === null && !skipsWrong && unknown.size >= MOST_NAMED) throw await refused();
      if (found === null && unknown.size > MOST_SKIPPED)
        throw new ImportRefused(
          `${where}more than ${MOST_SKIPPED} names match no coin; give the column of coins, like --columns coin=…`,
        );
      return found;
    },
    coinOf: async (name) => {
      const found = await look(name, '');
      if (found !== null) return found;
      const { problem, hint } = unknown.get(name)!;
      throw new ImportRefused(`${problem}${(await hintOfNoCoins(sql)) ?? (hint === null ? '' : `. ${hint}`)}`);
    },
    problemOf: (name) => unknown.get(name)?.problem,
    check: async () => {
      if (!skipsWrong && unknown.size > 0) throw await refused();
    },
  };
}

/** Null when the warehouse knows coins. */
async function hintOfNoCoins(sql: SqlOrTransaction): Promise<string | null> {
  const [row] = await sql<{ hasCoins: boolean }[]>`select exists (select from market.coin) as has_coins`;
  return row!.hasCoins
    ? null
    : '; this warehouse has no list of coins yet, which chandler service or any backfill reads';
}
