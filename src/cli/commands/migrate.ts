/** `chandler migrate`: brings the database to the schema of this version. */
import type { Command } from 'commander';
import { formatCounted } from '../output/format.ts';
import { printJson } from '../output/json.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT } from '../shell/exit.ts';

export function migrateCommand(program: Command, context: CommandContext): void {
  const { io } = context;
  program
    .command('migrate')
    .description(
      'bring the database to the schema of this version; safe to run twice, and from several processes; stop running backfills first, they would wait for it',
    )
    .option('--json', 'print the names of the migrations applied as JSON')
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
