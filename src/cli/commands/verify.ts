/** `chandler verify`: the proof. Recounts every covered slot against the stored candles; exits 1 on any difference. */
import type { Command } from 'commander';
import { formatCount, formatCounted, formatInstant, formatSeries, toIso } from '../../core/format.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { SeriesFilter } from '../../views/operations/series-filter.ts';
import { type SeriesProof, verifySeries } from '../../views/operations/verify.ts';
import { type NarrowOptions, narrowOptions, seriesFilter } from '../input/series-options.ts';
import { type Column, number, printTable, text, whole } from '../output/table.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT, type ExitCode } from '../shell/exit.ts';
import type { Io, Output } from '../shell/io.ts';
import { printJsonArray } from '../shell/json.ts';

type Options = NarrowOptions & { readonly json?: boolean };

export function verifyCommand(program: Command, context: CommandContext): void {
  narrowOptions(
    program
      .command('verify')
      .description(
        'prove that nothing is missing: recount every covered slot, and hash each series so that you can compare two warehouses',
      ),
  )
    .option('--json', 'print JSON')
    .action(
      context.action(async (coins: string[], options: Options) =>
        context.withApp({ schema: 'require' }, async ({ database: { sql }, clock }) => {
          const filter = await seriesFilter(sql, coins, options);
          return (options.json ? verifyAsJson : verify)(context.io, sql, filter, clock.now());
        }),
      ),
    );
}

async function verifyAsJson(io: Io, sql: Sql, filter: SeriesFilter, now: number): Promise<ExitCode> {
  let differences = 0;
  async function* counted() {
    for await (const proof of verifySeries(sql, filter, now)) {
      differences += proof.differences.length;
      const { suspect } = proof;
      yield { ...proof, suspect: suspect && { from: bound(suspect.from), to: bound(suspect.to) } };
    }
  }
  // When the reader has gone (`| head`) the proof goes on: the exit code is about all of it.
  await printJsonArray(io.out, counted(), { toTheEnd: true });
  return differences === 0 ? EXIT.done : EXIT.failed;
}

/** Also part of what `chandler demo` shows. */
export async function verify({ out }: Pick<Io, 'out'>, sql: Sql, filter: SeriesFilter, now: number): Promise<ExitCode> {
  let [series, candles, empty, differing] = [0, 0, 0, 0];
  const wrong: SeriesProof[] = [];
  let page: SeriesProof[] = [];
  const print = () => {
    if (page.length > 0) printTable(out, page, COLUMNS);
    page = [];
  };
  for await (const proof of verifySeries(sql, filter, now)) {
    series++;
    candles += proof.candles;
    empty += proof.knownEmpty;
    if (proof.differences.length > 0) {
      differing++;
      if (wrong.length < MOST_CORRECTED) wrong.push(proof);
    }
    page.push(proof);
    if (page.length === 500) print();
  }
  print();
  if (series === 0) {
    out.write('There is nothing to verify: no such series.\n');
    return EXIT.done;
  }
  const counted = `${formatCounted(series, 'series')}: ${formatCounted(candles, 'final candle')}, ${formatCounted(empty, 'slot')} known to be empty`;
  const verdict =
    differing === 0 ? 'Every covered slot is accounted for' : `${formatCounted(differing, 'series')} with differences`;
  out.write(`\n${counted}. ${verdict}.\n`);
  if (differing > 0) printCorrections(out, wrong, differing);
  return differing === 0 ? EXIT.done : EXIT.failed;
}

const MOST_CORRECTED = 20;

/** A proof changes nothing: it only shows the commands that would fetch the wrong spans again. */
function printCorrections(out: Output, wrong: readonly SeriesProof[], differing: number): void {
  out.write('\nTo fetch and correct the spans below, run these commands:\n');
  for (const { seriesId, coinId, interval, quote, suspect } of wrong) {
    const { from, to } = suspect!;
    const located = Number.isFinite(from) && Number.isFinite(to);
    const bounds = located ? `, '${toIso(from)}', '${toIso(to)}'` : '';
    const again = located
      ? `chandler backfill ${coinId} --interval ${interval} --quote ${quote} --start ${toIso(from)} --end ${toIso(to)}`
      : 'and then the backfill command of that series again';
    const where = located
      ? `between ${formatInstant(from)} and ${formatInstant(to)}, according to the recorded answers`
      : 'anywhere in the series, as counts are recorded for the whole series only';
    out.write(
      `\n  ${coinId} ${formatSeries({ interval, quote })}: ${where}\n` +
        `    chandler sql "select ops.uncover(${seriesId}${bounds})"\n` +
        `    ${again}\n`,
    );
  }
  if (differing > wrong.length)
    out.write(`\n  and ${formatCount(differing - wrong.length)} more series (--json lists all)\n`);
}

function bound(at: number): string | null {
  return Number.isFinite(at) ? toIso(at) : null;
}

const COLUMNS: readonly Column<SeriesProof>[] = [
  text('coin', (proof) => proof.coinId),
  whole('series', formatSeries),
  number('covered', (proof) => proof.slotsCovered),
  number('candles', (proof) => proof.candles),
  number('empty', (proof) => proof.knownEmpty),
  number('not final', (proof) => proof.provisional),
  whole('hash', (proof) => (proof.candles === 0 ? null : proof.hash)),
  whole('', ({ differences }) => (differences.length === 0 ? 'ok' : `DIFFERS: ${differences.join('; ')}`)),
];
