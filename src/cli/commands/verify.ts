/** `chandler verify`: the proof. Recounts every covered slot against the rows; exits 1 on any difference. */
import type { Command } from 'commander';
import type { Quote } from '../../core/candle.ts';
import type { Interval } from '../../core/interval.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { SeriesFilter } from '../../views/operations/series-filter.ts';
import { type SeriesProof, verifySeries } from '../../views/operations/verify.ts';
import { argument, parseInterval, parseQuote } from '../input/options.ts';
import { requireKnownCoins } from '../input/series-arguments.ts';
import { formatCount, formatCounted, formatInstant, formatSeries } from '../output/format.ts';
import { printJsonArray, toIso } from '../output/json.ts';
import { formatTable } from '../output/table.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT, type ExitCode } from '../shell/exit.ts';
import type { Io, Output } from '../shell/io.ts';

type Options = { readonly interval?: Interval; readonly quote?: Quote; readonly json?: boolean };

export function verifyCommand(program: Command, context: CommandContext): void {
  program
    .command('verify')
    .description(
      'recount every covered slot against the candles stored, with a hash per series that two warehouses can compare',
    )
    .argument('[coin...]', 'ids of coins, like btc-bitcoin; all series when none is given')
    .option('--interval <interval>', 'only this width of candle', argument(parseInterval))
    .option('--quote <quote>', 'only this currency', argument(parseQuote))
    .option('--json', 'print JSON')
    .action(
      context.action(async (coins: string[], { interval, quote, json }: Options) =>
        context.withApp({ schema: 'require' }, async ({ database: { sql }, clock }) => {
          await requireKnownCoins(sql, coins);
          const filter = { coinIds: coins.length > 0 ? coins : undefined, interval, quote };
          return json
            ? verifyAsJson(context.io, sql, filter, clock.now())
            : verify(context.io, sql, filter, clock.now());
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
  // A reader that has gone (`| head`) ends the printing, not the proof: the exit code is about all of it.
  await printJsonArray(io.out, counted(), { toTheEnd: true });
  return differences === 0 ? EXIT.done : EXIT.failed;
}

/** Also part of what `chandler demo` shows. */
export async function verify({ out }: Pick<Io, 'out'>, sql: Sql, filter: SeriesFilter, now: number): Promise<ExitCode> {
  let [series, candles, empty, differing] = [0, 0, 0, 0];
  const wrong: SeriesProof[] = [];
  let page: SeriesProof[] = [];
  const print = () => {
    if (page.length > 0) out.write(formatTable(COLUMNS, page.map(toRow), out.columns()));
    page = [];
  };
  for await (const proof of verifySeries(sql, filter, now)) {
    series++;
    candles += proof.candles;
    empty += proof.knownEmpty;
    if (proof.differences.length > 0) {
      differing++;
      if (wrong.length < MOST_MENDED) wrong.push(proof);
    }
    page.push(proof);
    if (page.length === 500) print();
  }
  print();
  if (series === 0) {
    out.write('There is nothing to verify: no such series is wanted.\n');
    return EXIT.done;
  }
  const counted = `${formatCounted(series, 'series', 'series')}: ${formatCounted(candles, 'final candle')}, ${formatCounted(empty, 'slot')} known to be empty`;
  out.write(
    differing === 0
      ? `\n${counted}. Every covered slot is accounted for.\n`
      : `\n${counted}. ${formatCounted(differing, 'series', 'series')} with differences.\n`,
  );
  if (differing > 0) printMending(out, wrong, differing);
  return differing === 0 ? EXIT.done : EXIT.failed;
}

const MOST_MENDED = 20;

/** Nothing is changed by a proof: what would have it asked again is only shown. */
function printMending(out: Output, wrong: readonly SeriesProof[], differing: number): void {
  out.write('\nEach stretch below is asked again, and its candles put right, once these have run:\n');
  for (const { seriesId, coinId, interval, quote, suspect } of wrong) {
    const { from, to } = suspect!;
    const located = Number.isFinite(from) && Number.isFinite(to);
    const stretch = located ? `, '${toIso(from)}', '${toIso(to)}'` : '';
    const again = located
      ? `chandler backfill ${coinId} --interval ${interval} --quote ${quote} --start ${toIso(from)} --end ${toIso(to)}`
      : 'and the backfill of that series again, as it was given before';
    const where = located
      ? `within ${formatInstant(from)} … ${formatInstant(to)}, as the answers on record show`
      : 'anywhere in the series: counts are kept for all of it only';
    out.write(
      `\n  ${coinId} ${formatSeries({ interval, quote })}: ${where}\n` +
        `    chandler sql "select ops.uncover(${seriesId}${stretch})"\n` +
        `    ${again}\n`,
    );
  }
  if (differing > wrong.length)
    out.write(`\n  and ${formatCount(differing - wrong.length)} series more (--json has all)\n`);
}

function bound(at: number): string | null {
  return Number.isFinite(at) ? toIso(at) : null;
}

const right = { align: 'right' as const };
const COLUMNS = [
  { title: 'coin' },
  { title: 'series', isWhole: true },
  { title: 'covered', ...right },
  { title: 'candles', ...right },
  { title: 'empty', ...right },
  { title: 'not final', ...right },
  { title: 'hash', isWhole: true },
  { title: '', isWhole: true },
];

function toRow(proof: SeriesProof): string[] {
  return [
    proof.coinId,
    formatSeries(proof),
    formatCount(proof.slotsCovered),
    formatCount(proof.candles),
    formatCount(proof.knownEmpty),
    formatCount(proof.provisional),
    proof.candles === 0 ? '–' : proof.hash,
    proof.differences.length === 0 ? 'ok' : `DIFFERS: ${proof.differences.join('; ')}`,
  ];
}
