/** `chandler import list` and `chandler import drop`: list the imported sources, and remove one. */
import type { Command } from 'commander';
import { formatCounted, formatDay, formatInstant, withIso } from '../../core/format.ts';
import { didYouMeanOr, nearestNames } from '../../core/settings/did-you-mean.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { dropImportedSource, type ImportedSource, readImportedSources } from '../../store/imported/imported-series.ts';
import { canAsk, confirm } from '../input/confirm.ts';
import { number, printTable, text, whole } from '../output/table.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT, UsageError } from '../shell/exit.ts';
import { printJson } from '../shell/json.ts';

export function listCommand(parent: Command, context: CommandContext): void {
  const command = parent.command('list').description('show the sources that were imported');
  context.answer(command, async ({ database: { sql } }) => {
    const sources = await readImportedSources(sql);
    return {
      json: () => sources.map((source) => withIso(source, 'first', 'last', 'importedAt')),
      text: (out) => {
        if (sources.length === 0) out.write('Nothing was imported yet. chandler import --help shows how.\n');
        else printTable(out, sources, COLUMNS);
      },
    };
  });
}

const COLUMNS = [
  whole<ImportedSource>('source', ({ source }) => source),
  number<ImportedSource>('coins', ({ coins }) => coins),
  text<ImportedSource>('intervals', ({ intervals, quotes }) => `${intervals.join(', ')} ${quotes.join(', ')}`),
  number<ImportedSource>('candles', ({ candles }) => candles),
  whole<ImportedSource>('from', ({ first }) => formatDay(first)),
  whole<ImportedSource>('to', ({ last }) => formatDay(last)),
  whole<ImportedSource>('imported', ({ importedAt }) => formatInstant(importedAt)),
];

type DropOptions = { readonly yes?: boolean; readonly json?: boolean };

export function dropCommand(parent: Command, context: CommandContext): void {
  const command = parent.command('drop');
  command
    .argument('<source>', 'as chandler import list shows it')
    .description('remove all candles that were imported from a source; those of upstream and of other sources stay')
    .option('-y, --yes', 'do not ask')
    .option('--json', 'print JSON')
    .action(
      context.action(async (source: string) => {
        const { io, signal } = context;
        // The parent command has `--json` as well, and commander gives the option to the parent.
        const { yes = false, json = false } = command.optsWithGlobals<DropOptions>();
        const found = await context.withApp({ schema: 'require' }, ({ database: { sql } }) => findSource(sql, source));
        const size = `${formatCounted(found.candles, 'candle')} of ${formatCounted(found.series, 'series')}`;
        if (!yes) {
          if (!canAsk(io))
            throw new UsageError(`This removes ${size}; give --yes, because there is no terminal to ask in.`);
          if (!(await confirm(io, `Remove ${size} that were imported from ${source}?`, signal))) {
            io.out.write('Nothing was removed.\n');
            return EXIT.failed;
          }
        }
        return context.withApp({ schema: 'require', changes: true }, async ({ database: { sql } }) => {
          const dropped = await dropImportedSource(sql, source);
          if (dropped === null) throw new UsageError('An import is running; wait until it has ended.');
          if (json) printJson(io.out, { source, ...dropped });
          else
            io.out.write(
              `${source} is removed: ${formatCounted(dropped.candles, 'candle')} of ${formatCounted(dropped.series, 'series')}.\n`,
            );
          return EXIT.done;
        });
      }),
    );
}

/** @throws UsageError when no source has this name */
async function findSource(sql: Sql, name: string): Promise<ImportedSource> {
  const sources = await readImportedSources(sql);
  const found = sources.find(({ source }) => source === name);
  if (found !== undefined) return found;
  const near = nearestNames(
    name,
    sources.map(({ source }) => source),
  );
  throw new UsageError(`There is no source ${name}; ${didYouMeanOr(near, 'chandler import list shows them.')}`);
}
