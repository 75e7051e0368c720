/** `chandler lake accept`: makes the place in CHANDLER_LAKE_URL the lake of this warehouse, although another one was before. */
import type { Command } from 'commander';
import type { App } from '../../app.ts';
import { type OtherLake, readOtherLake } from '../../background/lake/lake-choice.ts';
import { ExportRefused } from '../../lake/refused.ts';
import { replaceLake } from '../../store/work/lake.ts';
import { canAsk, confirm } from '../input/confirm.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT, UsageError } from '../shell/exit.ts';
import { printJson } from '../shell/json.ts';
import { asCommandError } from './address-option.ts';

export function lakeCommand(program: Command, context: CommandContext): void {
  const lake = program.command('lake').description('choose which place is the lake of this warehouse');
  acceptCommand(lake, context);
}

type AcceptOptions = { readonly yes?: boolean; readonly json?: boolean };

function acceptCommand(parent: Command, context: CommandContext): void {
  parent
    .command('accept')
    .description(
      'continue with the place that CHANDLER_LAKE_URL names, or without a lake if it is not set; the previous lake is abandoned',
    )
    .option('-y, --yes', 'do not ask')
    .option('--json', 'print JSON')
    .action(
      context.action(async ({ yes = false, json = false }: AcceptOptions) => {
        const { io, signal } = context;
        const other = await context.withApp({ schema: 'require' }, readOther);
        if (other === null) {
          if (json) printJson(io.out, { accepted: false });
          else io.out.write('Nothing was changed: there is nothing to accept.\n');
          return EXIT.done;
        }
        const [found] = other.problem.split('; ');
        if (!yes) {
          if (!canAsk(io))
            throw new UsageError(`${found}. Give --yes to continue, because there is no terminal to ask in.`);
          if (!(await confirm(io, `${found}. ${questionOf(other)}`, signal))) {
            io.out.write('Nothing was changed.\n');
            return EXIT.failed;
          }
        }
        await context.withApp({ schema: 'require', changes: true }, ({ database: { sql } }) =>
          replaceLake(sql, other.next),
        );
        if (json) printJson(io.out, { accepted: true, place: other.place });
        else io.out.write(`${doneOf(other)}\n`);
        return EXIT.done;
      }),
    );
}

async function readOther(app: App): Promise<OtherLake | null> {
  try {
    return await readOtherLake(app);
  } catch (error) {
    throw error instanceof ExportRefused ? new UsageError(error.message) : asCommandError('CHANDLER_LAKE_URL', error);
  }
}

function questionOf({ place }: OtherLake): string {
  return place === null ? 'Continue without a lake?' : `Make ${place} the lake of this warehouse?`;
}

function doneOf({ place }: OtherLake): string {
  return place === null
    ? 'This warehouse has no lake any more; retention removes candles for good.'
    : `${place} is the lake of this warehouse; the next run of the schedule lake writes it.`;
}
