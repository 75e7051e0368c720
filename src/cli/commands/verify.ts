/** `chandler verify`: the proof. Recomputes every digest, and compares it with the upstream's answers. Exits 1 on any difference. */
import type { Command } from 'commander';
import { formatCount, formatCounted, formatInstant, formatSeries } from '../../core/format.ts';
import { rowNoun } from '../../core/interval.ts';
import type { Span } from '../../core/span.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { type SeriesProof, sizeOf, type VerifyFilter, verifySeries } from '../../views/operations/verify.ts';
import { countImported } from '../../views/verify/imported.ts';
import { verifyWarehouse } from '../../views/verify/warehouse.ts';
import { verifyFiles } from '../files/verify-files.ts';
import { type NarrowOptions, narrowOptions, refuseUnmatched, seriesFilter } from '../input/series-options.ts';
import { pastOption } from '../input/time.ts';
import { startBar } from '../output/bar.ts';
import { bound, isAllTime, refetchCommands, removeCommand, repairCommand } from '../output/repair-commands.ts';
import { type Column, number, printTable, text, whole } from '../output/table.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT, type ExitCode, UsageError } from '../shell/exit.ts';
import type { Io, Output } from '../shell/io.ts';
import { printJsonArray } from '../shell/json.ts';
import { verifyAgainst } from './verify-against.ts';

type Options = NarrowOptions & {
  readonly json?: boolean;
  readonly since?: string;
  readonly against?: string;
  readonly key?: string;
  readonly files?: string;
};

export function verifyCommand(program: Command, context: CommandContext): void {
  narrowOptions(
    program
      .command('verify')
      .description(
        'prove that the warehouse stores what the upstream answered: recompute every digest, and name the slots that differ',
      ),
  )
    .option(
      '--since <T>',
      'only series with an answer, or a step of evidence, since then: a date, a date-time, or relative like -1d',
    )
    .option('--json', 'print JSON')
    .option('--against <file>', 'compare with this attestation instead: equal, grown, revised on record, or tampered')
    .option('--key <file>', 'with --against: the public key that must have signed it')
    .option(
      '--files <place>',
      'recount an export (a folder, or s3://bucket/prefix) against its manifest, the warehouse if there is one, and --against',
    )
    .action(
      context.action(async (coins: string[], options: Options) => {
        const { against, key, files } = options;
        if (against === undefined && key !== undefined)
          throw new UsageError('--key needs --against, which names the file');
        const whole = files !== undefined ? '--files' : against !== undefined ? '--against' : null;
        if (whole !== null && (coins.length > 0 || options.interval || options.quote || options.since))
          throw new UsageError(
            `${whole} compares with the whole ${whole === '--files' ? 'export' : 'attestation'}; leave out coins, --interval, --quote and --since`,
          );
        if (files !== undefined) return verifyFiles(context, { ...options, files });
        return context.withApp({ schema: 'require' }, async ({ config, database: { sql }, clock }) => {
          if (against !== undefined)
            return verifyAgainst(context.io, sql, { ...options, against }, { keep: config.keep, now: clock.now() });
          const since = options.since === undefined ? undefined : pastOption('--since', options.since, clock.now());
          const chosen = await seriesFilter(sql, coins, options);
          await refuseUnmatched(sql, chosen);
          const filter = { ...chosen, since };
          return (options.json ? verifyAsJson : verify)(context.io, sql, filter, clock.now());
        });
      }),
    );
}

async function verifyAsJson(io: Io, sql: Sql, filter: VerifyFilter, now: number): Promise<ExitCode> {
  let differences = 0;
  const bar = await startBar(io.err, 'rows', async () => (await sizeOf(sql, filter)).candles);
  async function* counted() {
    for await (const proof of verifySeries(sql, filter, now)) {
      bar.add(proof.candles + proof.provisional);
      differences += proof.differences.length;
      const iso = (span: Span) => ({ from: bound(span.from), to: bound(span.to) });
      const { repairs, removals, toRefetch: _, ...rest } = proof;
      const commands = [
        ...removals.map(removeCommand),
        ...repairs.map((span) => repairCommand(proof, span)),
        ...refetchCommands(proof),
      ];
      yield { ...rest, stretches: proof.stretches.map(iso), commands };
    }
    const { others, removals } = await othersWrong(sql, filter);
    differences += others.length;
    // Rows that belong to no series have no element of their own.
    if (others.length > 0) yield { seriesId: null, differences: others, commands: removals.map(removeCommand) };
  }
  // When the reader has gone (`| head`) the proof continues, because the exit code covers all of it.
  await printJsonArray(io.out, counted(), { toTheEnd: true }).finally(bar.stop);
  return differences === 0 ? EXIT.done : EXIT.failed;
}

type Verified = {
  readonly series: number;
  readonly counts: { readonly candle: number; readonly price: number };
  /** Slots known to be empty. */
  readonly empty: number;
  /** Number of series with differences. */
  readonly differing: number;
  /** The first of these series. */
  readonly wrong: readonly SeriesProof[];
} & Others;

type Others = {
  /** What is wrong with rows that belong to no series. */
  readonly others: readonly string[];
  /** The statements that remove such rows. */
  readonly removals: readonly string[];
};

/** Verifies everything that matches the filter. `onProof` receives the proof of each series. */
export async function verifyAll(
  err: Output,
  sql: Sql,
  { filter, now, onProof }: { filter: VerifyFilter; now: number; onProof: (proof: SeriesProof) => void },
): Promise<Verified> {
  let [series, empty, differing] = [0, 0, 0];
  const counts = { candle: 0, price: 0 };
  const wrong: SeriesProof[] = [];
  const bar = await startBar(err, 'rows', async () => (await sizeOf(sql, filter)).candles);
  try {
    for await (const proof of verifySeries(sql, filter, now)) {
      bar.add(proof.candles + proof.provisional);
      series++;
      counts[rowNoun(proof.interval)] += proof.candles;
      empty += proof.knownEmpty;
      if (proof.differences.length > 0) {
        differing++;
        if (wrong.length < MOST_CORRECTED) wrong.push(proof);
      }
      onProof(proof);
    }
    return { series, counts, empty, differing, wrong, ...(await othersWrong(sql, filter)) };
  } finally {
    bar.stop();
  }
}

export function isProved({ differing, others }: Verified): boolean {
  return differing + others.length === 0;
}

/** Lists only some of the series that differ. `verify --json` lists all, with what to do. */
export function verifiedAsJson({ series, counts, empty, differing, wrong, others }: Verified) {
  const differences = wrong.map(({ coinId, interval, quote, differences: found }) => ({
    ...{ coinId, interval, quote },
    differences: found,
  }));
  return { series, candles: counts.candle, prices: counts.price, knownEmpty: empty, differing, differences, others };
}

/** `chandler demo` shows it as well. */
export async function verify(
  { out, err }: Pick<Io, 'out' | 'err'>,
  sql: Sql,
  filter: VerifyFilter,
  now: number,
): Promise<ExitCode> {
  let page: SeriesProof[] = [];
  const print = () => {
    if (page.length > 0) printTable(out, page, COLUMNS);
    printDifferences(out, page);
    page = [];
  };
  const onProof = (proof: SeriesProof) => {
    page.push(proof);
    if (page.length === 500) print();
  };
  const verified = await verifyAll(err, sql, { filter, now, onProof });
  const { series, counts, empty, differing, wrong, others, removals } = verified;
  print();
  const imported = isWhole(filter) ? await countImported(sql) : { series: 0, candles: 0 };
  if (series === 0 && others.length === 0 && imported.series === 0) {
    const what =
      filter.since === undefined
        ? 'no such series'
        : `no such series has a new answer since ${formatInstant(filter.since)}`;
    out.write(`There is nothing to verify: ${what}.\n`);
    return EXIT.done;
  }
  const counted = `${formatCounted(series, 'series')}: ${finalText(counts)}, ${formatCounted(empty, 'slot')} known to be empty`;
  const verdict =
    differing === 0
      ? 'Every covered slot has exactly what the upstream answered'
      : `${formatCounted(differing, 'series')} with differences`;
  out.write(`\n${counted}. ${verdict}.\n`);
  if (imported.series > 0)
    out.write(
      `Imported: ${formatCounted(imported.series, 'series')}, ${formatCounted(imported.candles, 'candle')}, recounted as well.\n`,
    );
  if (others.length > 0) printOthers(out, others, removals);
  if (differing > 0) printCorrections(out, wrong, differing);
  return isProved(verified) ? EXIT.done : EXIT.failed;
}

/** Rows without a series concern the whole warehouse, so this looks for them only if the filter selects everything. */
async function othersWrong(sql: Sql, filter: VerifyFilter): Promise<Others> {
  const removals = new Set<string>();
  const others = isWhole(filter) ? await verifyWarehouse(sql, (statement) => removals.add(statement)) : [];
  return { others, removals: [...removals] };
}

function isWhole({ coinIds, interval, quote, since }: VerifyFilter): boolean {
  return [coinIds, interval, quote, since].every((narrowed) => narrowed === undefined);
}

const MOST_CORRECTED = 20;

function printDifferences(out: Output, page: readonly SeriesProof[]): void {
  const list = (heading: string, texts: readonly string[]) => {
    if (texts.length > 0) out.write(`\n${heading}:\n${texts.map((text) => `  - ${text}\n`).join('')}`);
  };
  for (const { coinId, interval, quote, differences, notes } of page) {
    const name = `${coinId} ${formatSeries({ interval, quote })}`;
    list(`${name} differs`, differences);
    list(`Remarks on ${name}, which are not differences`, notes);
  }
}

function printOthers(out: Output, others: readonly string[], removals: readonly string[]): void {
  out.write(`\nOutside the series:\n${others.map((text) => `  ${text}\n`).join('')}`);
  if (removals.length === 0) return;
  out.write(
    '\nThese commands remove it. Chandler then makes rollups, weeks and months again by itself, but nothing else. Rows of a series\n' +
      'that does not exist, above all its evidence, may be right: if somebody has removed the series, restore a backup instead.\n',
  );
  for (const statement of removals.slice(0, MOST_CORRECTED)) out.write(`  ${removeCommand(statement)}\n`);
  const more = removals.length - MOST_CORRECTED;
  if (more > 0) out.write(`  and ${formatCount(more)} more (--json lists all)\n`);
}

/** A proof changes nothing. It only shows the commands that would fetch the wrong slots again. */
function printCorrections(out: Output, wrong: readonly SeriesProof[], differing: number): void {
  out.write('\nTo fetch and correct the slots below, run these commands:\n');
  for (const proof of wrong) {
    const { coinId, interval, quote, repairs, removals } = proof;
    out.write(`\n  ${coinId} ${formatSeries({ interval, quote })}:\n`);
    if (repairs.length + removals.length === 0)
      out.write('    no command corrects this; chandler restore brings back a backup from before it\n');
    for (const statement of removals)
      out.write(
        `    some rows have a time that no command accepts; this removes them:\n      ${removeCommand(statement)}\n`,
      );
    for (const span of repairs.slice(0, MOST_CORRECTED)) {
      const where = isAllTime(span)
        ? 'the whole series, with its evidence'
        : `between ${bound(span.from, formatInstant) ?? 'the beginning'} and ${bound(span.to, formatInstant) ?? 'the end'}`;
      out.write(`    ${where}:\n      ${repairCommand(proof, span)}\n`);
    }
    const more = repairs.length - MOST_CORRECTED;
    if (more > 0) out.write(`    and in ${formatCount(more)} more of its stretches (--json lists all)\n`);
    printFetches(out, refetchCommands(proof));
  }
  if (differing > wrong.length)
    out.write(`\n  and ${formatCount(differing - wrong.length)} more series (--json lists all)\n`);
}

function printFetches(out: Output, commands: readonly string[]): void {
  if (commands.length === 0) return;
  out.write('    and then:\n');
  for (const command of commands.slice(0, MOST_CORRECTED)) out.write(`      ${command}\n`);
  const more = commands.length - MOST_CORRECTED;
  if (more > 0) out.write(`      and ${formatCount(more)} more (--json lists all)\n`);
}

function finalText({ candle, price }: { readonly candle: number; readonly price: number }): string {
  const candles = candle > 0 || price === 0 ? [formatCounted(candle, 'final candle')] : [];
  return [...candles, ...(price > 0 ? [formatCounted(price, 'final price')] : [])].join(', ');
}

const COLUMNS: readonly Column<SeriesProof>[] = [
  text('coin', (proof) => proof.coinId),
  whole('series', formatSeries),
  number('covered', (proof) => proof.slotsCovered),
  number('rows', (proof) => proof.candles),
  number('empty', (proof) => proof.knownEmpty),
  number('not final', (proof) => proof.provisional),
  whole('hash', (proof) => (proof.candles === 0 ? null : proof.hash)),
  whole('', ({ differences }) => (differences.length === 0 ? 'ok' : 'DIFFERS')),
];
