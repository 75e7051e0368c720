/** `chandler migrate`: migrates the database to the schema of this version. */
import type { Command } from 'commander';
import { formatCounted } from '../../core/format.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT } from '../shell/exit.ts';
import { printJson } from '../shell/json.ts';

export function migrateCommand(program: Command, context: CommandContext): void {
  const { io } = context;
  program
    .command('migrate')
    .description(
      'migrate the database to the schema of this version; safe to repeat, and to run from several processes; stop backfills first, as the migration blocks them',
    )
    .option('--json', 'print the names of the applied migrations as JSON')
    .action(
      context.action(async (options: { json?: boolean }) =>
        context.withApp({ schema: 'migrate', patient: true }, async ({ migrated }) => {
          if (options.json) printJson(io.out, { applied: migrated });
          else if (migrated.length === 0) io.out.write('The schema is up to date.\n');
          else io.out.write(`Applied ${formatCounted(migrated.length, 'migration')}: ${migrated.join(', ')}.\n`);
          return EXIT.done;
        }),
      ),
    );
}
