/** The options of `chandler export`, and what they select. */
import type { Command } from 'commander';
import type { Instant } from '../../clock.ts';
import { INTERVALS, type Interval, isPriceInterval, PRICE_WIDTHS, priceInterval } from '../../core/interval.ts';
import type { Dataset } from '../../lake/dataset/dataset.ts';
import { DATASET_NAMES, DATASETS } from '../../lake/dataset/datasets.ts';
import type { Selection } from '../../lake/export/selection.ts';
import { FORMATS, type Format } from '../../lake/format/format.ts';
import { isOfTool, LAYOUTS, type Layout } from '../../lake/layout/layout.ts';
import { candleIntervalOf, choice, intervalOf, list, parseWidth, type Width } from '../input/options.ts';
import { pastOption, timeOption } from '../input/time.ts';
import { UsageError } from '../shell/exit.ts';

export type ExportCommandOptions = {
  readonly format?: Format;
  readonly what?: readonly string[];
  readonly coins?: readonly string[];
  readonly interval?: readonly Width[];
  readonly from?: string;
  readonly to?: string;
  readonly finalOnly?: boolean;
  readonly layout: Layout;
  readonly out?: string;
  readonly dryRun?: boolean;
  readonly json?: boolean;
};

const ALL = 'all';

export function exportOptions(command: Command): Command {
  return command
    .option(
      '--out <place>',
      'required: the folder to write to, or s3://bucket/prefix; an existing export there is updated',
    )
    .option(
      '--what <datasets>',
      `one or more datasets, separated by commas, or all: ${DATASET_NAMES.join(', ')} (default: candles,prices,coins)`,
      list(choice([...DATASET_NAMES, ALL])),
    )
    .option('--coins <ids>', 'only these coins, separated by commas, like btc-bitcoin,eth-ethereum', list(parseCoin))
    .option(
      '--interval <interval>',
      `only these intervals, separated by commas: ${INTERVALS.join(', ')}; of prices: ${PRICE_WIDTHS.join(', ')}`,
      list(parseWidth),
    )
    .option('--from <T>', 'only rows from then on: a date (UTC midnight), a date-time with its zone, or like -30d')
    .option('--to <T>', 'only rows before then')
    .option(
      '--final-only',
      'leave out candles and prices that may still change; freqtrade, lean and jesse never have them',
    )
    .option('--format <format>', `${FORMATS.join(', ')} (default: parquet)`, choice(FORMATS))
    .option(
      '--layout <layout>',
      'hive: interval=…/quote=…/year=…; single: a file for each dataset; freqtrade, lean, jesse: as these tools read candles',
      choice(LAYOUTS),
      'hive',
    )
    .option('--dry-run', 'only show the expected size and time')
    .option('--json', 'print JSON');
}

function parseCoin(text: string): string {
  if (text !== '') return text;
  throw new UsageError('A coin id is empty; ids look like btc-bitcoin.');
}

/** @throws UsageError for invalid values, and for options that contradict each other */
export function readSelection(options: ExportCommandOptions, now: Instant): Selection {
  const datasets = datasetsOf(options);
  const from = options.from === undefined ? Number.NEGATIVE_INFINITY : pastOption('--from', options.from, now);
  const to = options.to === undefined ? Number.POSITIVE_INFINITY : timeOption('--to', options.to, now);
  if (to <= from)
    throw new UsageError(
      `--to ${options.to} is not after --from ${options.from}; --to is exclusive, so choose a later one.`,
    );
  return {
    datasets,
    coinIds: options.coins === undefined ? null : [...new Set(options.coins)],
    intervals: options.interval === undefined ? null : intervalsOf(options.interval, datasets),
    span: { from, to },
    // Tools that read such a layout cannot see which candles may still change.
    finalOnly: options.finalOnly ?? isOfTool(options.layout),
    format: formatOf(options),
    layout: options.layout,
  };
}

function datasetsOf({ what, layout }: ExportCommandOptions): Dataset[] {
  const names = what ?? (isOfTool(layout) ? ['candles'] : ['candles', 'prices', 'coins']);
  const other = names.find((name) => name !== 'candles');
  if (isOfTool(layout) && other !== undefined)
    throw new UsageError(`The layout ${layout} has only candles; leave out --what, or give another --layout.`);
  return DATASETS.filter(({ name }) => names.includes(ALL) || names.includes(name));
}

/** The intervals of candles, of prices, or of both, depending on what is exported. */
function intervalsOf(widths: readonly Width[], datasets: readonly Dataset[]): Interval[] {
  const has = (name: string) => datasets.some((dataset) => dataset.name === name);
  const found = new Set<Interval>();
  for (const width of widths) {
    const meant = [
      ...(has('candles') && (INTERVALS as readonly string[]).includes(width) ? [width as Interval] : []),
      ...(has('prices') && pricesOf(width) !== null ? [pricesOf(width)!] : []),
    ];
    // Throws an error that names the existing intervals.
    if (meant.length === 0 && has('prices') && !has('candles')) found.add(intervalOf(width, 'prices'));
    else if (meant.length === 0) found.add(candleIntervalOf(width, ', or add prices to --what'));
    for (const interval of meant) found.add(interval);
  }
  return [...found];
}

function pricesOf(width: Width): Interval | null {
  if (isPriceInterval(width)) return width;
  const found = PRICE_WIDTHS.find((one) => one === (width === '24h' ? '1d' : width));
  return found === undefined ? null : priceInterval(found);
}

const OF_TOOLS: Readonly<Record<Layout, readonly Format[]>> = {
  hive: FORMATS,
  single: FORMATS,
  freqtrade: ['parquet', 'arrow'],
  lean: ['csv'],
  jesse: ['csv'],
};

function formatOf({ format, layout }: ExportCommandOptions): Format {
  const [usual, ...others] = OF_TOOLS[layout];
  if (format === undefined || [usual, ...others].includes(format)) return format ?? usual!;
  const right = others.length === 0 ? 'leave out --format' : `give --format ${[usual, ...others].join(' or ')}`;
  throw new UsageError(
    `The layout ${layout} is read by its tool as ${[usual, ...others].join(' or ')}, and not as ${format}; ${right}.`,
  );
}
