/** `chandler serve`: answers like the upstream, from the warehouse, until it is told to stop. */
import type { Command } from 'commander';
import { serveMarket } from '../../background/http/market-server.ts';
import { StoreError } from '../../store/connection/store-error.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT, UsageError } from '../shell/exit.ts';
import { ownerName } from '../shell/owner.ts';

export function serveCommand(program: Command, context: CommandContext): void {
  program
    .command('serve')
    .description(
      "answer like the upstream, from the warehouse: REST under /v1, JSON-RPC and MCP at /rpc, at CHANDLER_LISTEN, until Ctrl-C or SIGTERM; the data are their vendor's, whose terms decide who may be served",
    )
    .action(
      context.action(async () => {
        const config = context.config();
        try {
          await serveMarket({
            config,
            clock: context.clock,
            log: context.log(config),
            owner: ownerName(process.pid),
            signal: context.signal,
          });
        } catch (error) {
          if (error instanceof StoreError && error.isConfiguration) throw new UsageError(error.message);
          throw error;
        }
        return EXIT.done;
      }),
    );
}
