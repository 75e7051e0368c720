/** `chandler service`: keeps everything fresh and works off backfills, until it is told to stop. */
import type { Command } from 'commander';
import { ROLES, type Role } from '../../background/health/service-status.ts';
import { serve } from '../../background/service/service.ts';
import { ConfigurationError } from '../../ingest/outcome.ts';
import { StoreError } from '../../store/connection/store-error.ts';
import { argument, parseChoice, parseInteger } from '../input/options.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT, UsageError } from '../shell/exit.ts';
import { ownerName } from '../shell/owner.ts';

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
      'keep tickers, coins, global data, exchanges and all tracked series fresh, and work off backfills, until Ctrl-C or SIGTERM; any number of them share the work',
    )
    .option('--role <role>', `what this process does: ${ROLE_WORDS.join(', ')}; several with commas`, parseRoles, ROLES)
    .option(
      '--concurrency <n>',
      'requests under way at once for backfills, and as many for the newest candles',
      argument((text) => parseInteger(text, 1, 32)),
      8,
    )
    .option(
      '--migrate',
      'bring a shared database to the schema of this version; otherwise chandler migrate is waited for',
    )
    .action(
      context.action(async ({ role, concurrency, migrate = false }: Options) => {
        const config = context.config();
        try {
          await serve({
            config,
            clock: context.clock,
            log: context.log(config),
            roles: role,
            owner: ownerName(process.pid),
            concurrency,
            migrate,
            signal: context.signal,
          });
        } catch (error) {
          if (error instanceof ConfigurationError) throw new UsageError(error.message);
          if (error instanceof StoreError && error.isConfiguration) throw new UsageError(error.message);
          throw error;
        }
        return EXIT.done;
      }),
    );
}

const parseRoles = argument((text: string): readonly Role[] => {
  const words = text.split(',').map((word) => parseChoice(word.trim(), ROLE_WORDS));
  return ROLES.filter((role) => words.includes(role) || words.includes('all'));
});
