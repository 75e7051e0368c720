/** The series of an import: where the rows of each are stored, and what was added to each. */
import type { Instant } from '../../clock.ts';
import { isQuote, type Quote } from '../../core/candle.ts';
import type { HashSum } from '../../core/candle-hash.ts';
import { type CandleInterval, INTERVALS, isCandleInterval, nameOfSeries, settledUntil } from '../../core/interval.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import type { BeforeImport, ImportTransaction } from '../../store/imported/import-transaction.ts';
import { type CoinNames, createCoinNames } from './coin-names.ts';
import { createSlotsSeen, type SlotsSeen } from './slots-seen.ts';

export type ImportSeries = {
  readonly coinId: string;
  readonly quote: Quote;
  readonly interval: CandleInterval;
  readonly before: BeforeImport;
  /** The values for the check of its times. */
  readonly times: { readonly interval: CandleInterval; readonly latest: Instant; readonly name: string };
  /** Slots that open before this are final, unless the file says otherwise. */
  readonly finalUntil: Instant;
  readonly seen: SlotsSeen;
  /** Counts the rows that went straight into the table, without staging. */
  added: number;
  readonly sum: HashSum;
};

/** The texts of the rows, or those that are given for all of them; empty when there is neither. */
export type SeriesText = { readonly coin: string; readonly interval: string; readonly quote: string };

export type SeriesBook = {
  /** The series, or the reason why such rows are wrong; undefined: call `open` first. */
  find(text: SeriesText): ImportSeries | string | undefined;
  /** Opens the series of `texts`. Rows of an unknown coin are wrong; `where` names the first one. @throws ImportRefused for too many such coins */
  open(texts: readonly (SeriesText & { readonly where: string })[]): Promise<void>;
  readonly coins: Pick<CoinNames, 'coinOf' | 'problemOf' | 'check'>;
  readonly all: readonly ImportSeries[];
};

const OTHERWISE_WRITTEN: Readonly<Record<string, CandleInterval>> = { '1d': '24h', '60m': '1h', '1440m': '24h' };

export function createSeriesBook(deps: {
  readonly sql: SqlOrTransaction;
  /** Null: nothing is stored. */
  readonly transaction: ImportTransaction | null;
  readonly now: Instant;
  /** Leaves out rows of unknown coins. When false, such rows make the import fail. */
  readonly skipsWrong: boolean;
}): SeriesBook {
  const { sql, transaction, now, skipsWrong } = deps;
  const byText = new Map<string, ImportSeries | string>();
  const byName = new Map<string, ImportSeries>();
  const coins = createCoinNames(sql, skipsWrong);
  const all: ImportSeries[] = [];
  const make = (name: Name, before: BeforeImport): ImportSeries => ({
    ...name,
    before,
    times: { interval: name.interval, latest: now, name: 'time' },
    finalUntil: settledUntil(now, name.interval),
    seen: createSlotsSeen(
      before.first === null || before.last === null ? null : { from: before.first, to: before.last },
    ),
    added: 0,
    sum: { upper: 0, lower: 0 },
  });
  return {
    find: (text) => byText.get(keyOf(text)),
    open: async (texts) => {
      const wanted = new Map<string, Name>();
      const keys: (readonly [key: string, name: string])[] = [];
      for (const { where, ...text } of texts) {
        const read = readNames(text);
        const coinId = typeof read === 'string' ? null : await coins.find(text.coin, where);
        if (typeof read === 'string') byText.set(keyOf(text), read);
        else if (coinId === null) byText.set(keyOf(text), coins.problemOf(text.coin)!);
        else {
          const named = { coinId, ...read };
          const name = nameOfSeries(named);
          keys.push([keyOf(text), name]);
          if (!byName.has(name)) wanted.set(name, named);
        }
      }
      const names = [...wanted.values()];
      const before =
        transaction === null
          ? names.map(() => ({ id: 0, candles: 0, first: null, last: null }))
          : await transaction.openSeries(names);
      for (const [i, [name, named]] of [...wanted].entries()) {
        const series = make(named, before[i]!);
        byName.set(name, series);
        all.push(series);
      }
      for (const [key, name] of keys) byText.set(key, byName.get(name)!);
    },
    coins,
    all,
  };
}

type Name = { readonly coinId: string; readonly quote: Quote; readonly interval: CandleInterval };

const keyOf = ({ coin, interval, quote }: SeriesText) => `${coin}\n${interval}\n${quote}`;

/** Whether a text names another interval or quote than the one that is given for all rows. A text that names none contradicts nothing. */
export function isAnother(role: 'interval' | 'quote', text: string, said: string): boolean {
  const named = (one: string) => {
    const names = readNames({ coin: 'any', interval: '1h', quote: 'usd', [role]: one });
    return typeof names === 'string' ? null : names[role];
  };
  const [found, given] = [named(text), named(said)];
  return found !== null && given !== null && found !== given;
}

/** Returns a text when there is no such series: the reason. */
function readNames({ coin, interval, quote }: SeriesText): Omit<Name, 'coinId'> | string {
  if (coin === '') return 'has no coin';
  const width = OTHERWISE_WRITTEN[interval.toLowerCase()] ?? interval.toLowerCase();
  if (!isCandleInterval(width)) return `the interval must be one of ${INTERVALS.join(', ')}`;
  const currency = quote.toLowerCase();
  return isQuote(currency) ? { interval: width, quote: currency } : 'the quote must be usd or btc';
}
