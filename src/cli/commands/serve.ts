/** `chandler serve`: serves the upstream's interface from the warehouse, until it is stopped. */
import type { Command } from 'commander';
import { commandLine } from '../shell/audited.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT } from '../shell/exit.ts';
import { ownerName, requesterName } from '../shell/owner.ts';

export function serveCommand(program: Command, context: CommandContext): void {
  program
    .command('serve')
    .description(
      "serve the warehouse through the same API as the upstream, until Ctrl-C or SIGTERM: REST under /v1, JSON-RPC and MCP at /rpc, at the address CHANDLER_LISTEN; the vendor's terms say to whom you may serve its data",
    )
    .action(
      context.action(async () => {
        const config = context.config();
        // Loaded only when the command runs, so that the help stays fast.
        const { serveMarket } = await import('../../background/http/market-server.ts');
        const { recordStart } = await import('../../background/service/recorded-start.ts');
        const start = { actor: requesterName(), command: commandLine(context.argv), env: context.env };
        await serveMarket({
          config,
          clock: context.clock,
          log: context.log(config),
          owner: ownerName(process.pid),
          signal: context.signal,
          recordStart: (app) => recordStart({ start }, app),
        });
        return EXIT.done;
      }),
    );
}
