/** The options of `chandler import`. */
import type { Command } from 'commander';
import { INTERVALS } from '../../core/interval.ts';
import { didYouMean } from '../../core/settings/did-you-mean.ts';
import { FORMATS, type Format } from '../../lake/format/format.ts';
import { type NamedColumns, ROLES, type Role } from '../../lake/import/columns.ts';
import { TIME_UNITS, type TimeUnit } from '../../lake/import/values.ts';
import { candleIntervalOf, choice, list, parseQuote, parseWidth, type Width } from '../input/options.ts';
import { UsageError } from '../shell/exit.ts';

export type ImportCommandOptions = {
  readonly source?: string;
  readonly coin?: string;
  readonly interval?: Width;
  readonly quote?: string;
  readonly columns?: readonly NamedColumn[];
  readonly timeUnit?: TimeUnit;
  /** False with `--no-header`. */
  readonly header: boolean;
  readonly format?: Format;
  readonly replace?: boolean;
  readonly skipWrong?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
};

type NamedColumn = readonly [role: Role, column: string];

export function importOptions(command: Command): Command {
  return command
    .option('--source <name>', 'required: where the candles come from, like binance; letters, digits, -, _ and .')
    .option('--coin <id>', 'the coin of all rows: an id, a symbol or a contract; without it, a column must give it')
    .option(
      '--interval <interval>',
      `the width of all candles: ${INTERVALS.join(', ')}; without it, a column must give it`,
      parseWidth,
    )
    .option('--quote <quote>', 'the currency of all prices: usd or btc (default: from a column, else usd)', parseQuote)
    .option(
      '--columns <pairs>',
      `which column is what, by name or by number from 1: time=ts,open=2,…; of ${ROLES.join(', ')}`,
      list(parseColumn),
    )
    .option(
      '--time-unit <unit>',
      `the unit of numeric times: ${TIME_UNITS.join(', ')} (default: detected by their size)`,
      choice(TIME_UNITS),
    )
    .option(
      '--no-header',
      'the first record of a CSV file is a row; without --columns: time, open, high, low, close, volume',
    )
    .option('--format <format>', `${FORMATS.join(', ')} (default: as the names of the files end)`, choice(FORMATS))
    .option('--replace', 'replace values that an earlier import of this source has stored')
    .option('--skip-wrong', 'leave out wrong rows; without it one wrong row stops the import')
    .option('--dry-run', 'read and check all rows, and store nothing')
    .option('--json', 'print JSON');
}

/** @throws UsageError for an invalid name */
function parseSource(name: string): string {
  if (/^[A-Za-z0-9._-]{1,63}$/.test(name) && name.toLowerCase() !== 'upstream') return name;
  throw new UsageError(
    `'${name}' is not a name of a source: it must be 1 to 63 letters, digits, -, _ and ., and not upstream, which is the name for data that Chandler itself requested.`,
  );
}

export function sourceOf({ source }: ImportCommandOptions): string {
  // Commander would report a missing required option before a misspelt one, so this checks it.
  if (source === undefined)
    throw new UsageError('--source is missing; say where the candles come from, like --source binance.');
  return parseSource(source);
}

function parseColumn(text: string): NamedColumn {
  const [, name, column] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  if (name === undefined || column === undefined)
    throw new UsageError(`'${text}' is not a pair like time=timestamp or open=2.`);
  const role = ROLES.find((one) => one === name.trim().toLowerCase());
  if (role !== undefined) return [role, column.trim()];
  throw new UsageError(`There is no ${name}${didYouMean(name, ROLES)}; it must be one of ${ROLES.join(', ')}.`);
}

/** @throws UsageError for an interval without candles, and for options that contradict each other */
export function readOptionsOf({ coin, interval, quote, columns = [], header }: ImportCommandOptions) {
  if (coin !== undefined && coin.trim() === '') throw new UsageError('A coin id is empty; ids look like btc-bitcoin.');
  const named: NamedColumns = Object.fromEntries(columns);
  const twice = columns.find(([role], i) => columns.findIndex(([other]) => other === role) < i);
  if (twice !== undefined) throw new UsageError(`--columns names two columns for ${twice[0]}; leave out one of them.`);
  for (const [role, said] of [
    ['coin', coin],
    ['interval', interval],
    ['quote', quote],
  ] as const)
    if (said !== undefined && named[role] !== undefined)
      throw new UsageError(
        `--${role} sets it for all rows, and --columns names a column for it; leave out one of them.`,
      );
  return {
    coin: coin ?? null,
    interval: interval === undefined ? null : candleIntervalOf(interval),
    quote: quote ?? null,
    columns: named,
    hasHeader: header,
  };
}
