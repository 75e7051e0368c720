/** `chandler migrate`: migrates the database to the schema of this version. */
import type { Command } from 'commander';
import type { App } from '../../app.ts';
import { formatCounted } from '../../core/format.ts';
import type { Answer, CommandContext } from '../shell/context.ts';

export function migrateCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('migrate')
    .description(
      'migrate the database to the schema of this version; safe to repeat, and to run from several processes; stop backfills first, as the migration blocks them',
    );
  const report = async ({ migrated }: App): Promise<Answer> => ({
    json: () => ({ applied: migrated }),
    text: (out) => out.write(describe(migrated)),
  });
  context.answer(command, report, { schema: 'migrate', handlesInterrupt: true, changes: true });
}

function describe(migrated: readonly string[]): string {
  if (migrated.length === 0) return 'The schema is up to date.\n';
  return `Applied ${formatCounted(migrated.length, 'migration')}: ${migrated.join(', ')}.\n`;
}
