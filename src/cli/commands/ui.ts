/** `chandler ui`: the dashboard in a browser, until it is stopped. */
import type { Command } from 'commander';
import { untilAborted } from '../../core/concurrency/unless-aborted.ts';
import { createFailureLog } from '../../log.ts';
import { integer } from '../input/options.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT } from '../shell/exit.ts';

type Options = { readonly host: string; readonly port: number };

/** Differs from the port of a service on the same machine, which shows the dashboard as well. */
const PORT = 8081;

export function uiCommand(program: Command, context: CommandContext): void {
  program
    .command('ui')
    .description(
      'show the warehouse in a browser until Ctrl-C or SIGTERM: what needs attention, coverage, candles, quota, backfills; a running service shows the same at CHANDLER_LISTEN',
    )
    .option('--host <host>', 'address to listen on; from another machine only operators have access', '127.0.0.1')
    .option('--port <port>', 'port to listen on; 0 takes any free one', integer(0, 65_535), PORT)
    .action(context.action((options: Options) => ui(context, options)));
}

async function ui(context: CommandContext, { host, port }: Options) {
  // Loaded only when the command runs, so that the help stays fast.
  const { openDashboard } = await import('../../background/dashboard/open-dashboard.ts');
  const { requestFailures } = await import('../../background/http/market-http.ts');
  const { listen } = await import('../../service/http/listen.ts');
  const { io, signal } = context;
  return context.withApp({ schema: 'require', handlesInterrupt: true }, async (app) => {
    const onError = requestFailures(createFailureLog(app.log, app.clock, signal));
    const dashboard = openDashboard({ app, states: () => null, hasDocs: false, onError });
    const aborted = untilAborted(signal);
    await Promise.race([dashboard.prepare(), aborted]);
    if (signal.aborted) {
      await dashboard.close();
      return EXIT.done;
    }
    const server = await listen(dashboard, { host, port, onError });
    try {
      io.out.write(`The dashboard is at ${server.url}/ until you press Ctrl-C.\n`);
      io.out.write('To change something there, sign in with a key: chandler keys create --operator --name you\n');
      await aborted;
    } finally {
      await server.close();
      await dashboard.close();
    }
    return EXIT.done;
  });
}
