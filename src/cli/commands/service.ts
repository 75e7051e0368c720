/** `chandler service`: keeps everything fresh and runs backfills, until it is stopped. */
import type { Command } from 'commander';
import { ROLES, type Role } from '../../background/health/service-status.ts';
import { choice, integer } from '../input/options.ts';
import { commandLine } from '../shell/audited.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT } from '../shell/exit.ts';
import { ownerName, requesterName } from '../shell/owner.ts';

type Options = {
  readonly role: readonly Role[];
  readonly concurrency: number;
  readonly migrate?: boolean;
};

const ROLE_WORDS = [...ROLES, 'all'] as const;

export function serviceCommand(program: Command, context: CommandContext): void {
  program
    .command('service')
    .description(
      'keep tickers, coins, global data, exchanges and all tracked series fresh, and run backfills, until Ctrl-C or SIGTERM; several processes share the work',
    )
    .option(
      '--role <role>',
      `what this process does: ${ROLE_WORDS.join(', ')}; several are separated by commas`,
      parseRoles,
      ROLES,
    )
    .option(
      '--concurrency <n>',
      'concurrent requests for backfills, and as many for the newest candles',
      integer(1, 32),
      8,
    )
    .option(
      '--migrate',
      'migrate a shared database first; without it, the service creates the schema in an empty database, and waits for chandler migrate if the schema is older',
    )
    .action(
      context.action(async ({ role, concurrency, migrate = false }: Options) => {
        const config = context.config();
        // Loaded only when the command runs, so that the help stays fast.
        const { runService } = await import('../../background/service/service.ts');
        await runService({
          config,
          clock: context.clock,
          log: context.log(config),
          roles: role,
          owner: ownerName(process.pid),
          concurrency,
          migrate,
          start: { actor: requesterName(), command: commandLine(context.argv), env: context.env },
          signal: context.signal,
        });
        return EXIT.done;
      }),
    );
}

function parseRoles(text: string): readonly Role[] {
  const words = text.split(',').map((word) => choice(ROLE_WORDS)(word.trim()));
  return ROLES.filter((role) => words.includes(role) || words.includes('all'));
}
