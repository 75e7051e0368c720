/** `chandler simulate`: simulates the upstream on a port of this machine: its interface, its limits and, if requested, faults. */
import { type Command, Option } from 'commander';
import { PLAN_NAMES, type PlanName } from '../../contract/plan/plans.ts';
import { untilAborted } from '../../core/concurrency/unless-aborted.ts';
import { formatCount, formatCounted } from '../../core/format.ts';
import { type Listening, listen } from '../../service/http/listen.ts';
import { createSimulator, MARKETS, type MarketName, type Simulator } from '../../simulate.ts';
import { FAULT_NAMES, type FaultSpec, NO_FAULTS, parseFaultSpec } from '../../simulator/faults/fault-spec.ts';
import { choice, integer } from '../input/options.ts';
import { parseDuration } from '../input/time.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT, UsageError } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';
import { printJson } from '../shell/json.ts';

type Options = {
  readonly host: string;
  readonly port: number;
  readonly market: MarketName;
  readonly plan?: PlanName;
  readonly key: Readonly<Record<string, PlanName>>;
  readonly unlimited?: boolean;
  readonly faults: FaultSpec;
  readonly seed: number;
  readonly coins: number;
  readonly latency: number;
  readonly latestAfter: number;
  readonly auth: AuthScheme;
  readonly requireRationale?: boolean;
  readonly gzip: boolean;
  readonly json?: boolean;
};

const AUTH_SCHEMES = ['bare', 'bearer', 'both'] as const;
type AuthScheme = (typeof AUTH_SCHEMES)[number];

/** A first command to try with each market. */
const EXAMPLES: Readonly<Record<MarketName, string>> = {
  'made-up': 'backfill --top 10 --start -30d',
  recorded: 'backfill --all --start 2017-01-01 --end 2018-01-01',
};

export function simulateCommand(program: Command, context: CommandContext): void {
  program
    .command('simulate')
    .description('simulate the upstream on a port of this machine, until Ctrl-C')
    .option('--host <host>', 'address to listen on', '127.0.0.1')
    .option('--port <port>', 'port to listen on; 0 takes any free one', integer(0, 65_535), 8090)
    .option(
      '--market <market>',
      'made-up: seeded and endless; recorded: real candles of three coins',
      choice(MARKETS),
      'made-up',
    )
    .option(
      '--plan <plan>',
      `the plan of callers without a key: ${PLAN_NAMES.join(', ')} (default: free, or enterprise with --unlimited)`,
      choice(PLAN_NAMES),
    )
    .option('--key <key=plan>', 'a key and its plan; may be repeated; other keys are refused', parseKey, {})
    .option(
      '--auth <scheme>',
      `how a key must be sent: ${AUTH_SCHEMES.join(', ')}; the real paid host refuses bearer`,
      choice(AUTH_SCHEMES),
      'both',
    )
    .option('--require-rationale', 'tool calls must give their reason (rationale), as on the vendor’s hosted server')
    .option('--unlimited', 'apply no limits; a --plan then decides only which fields and tools callers get')
    .option(
      '--faults <spec>',
      `faults and their rates, like all:0.05 or 500:0.02,lies:0.01,seed=7; faults: ${FAULT_NAMES.join(', ')}`,
      parseFaults,
      NO_FAULTS,
    )
    .option(
      '--seed <n>',
      'seed of the made-up market: the same seed gives the same candles',
      integer(0, 2 ** 31 - 1),
      1,
    )
    .option('--coins <n>', 'number of coins in the made-up market', integer(1, 65_000), 100)
    .addOption(
      new Option('--latency <time>', 'delay of each answer, like 50ms').argParser(parseDuration).default(0, 'none'),
    )
    .addOption(
      new Option(
        '--latest-after <time>',
        'how long after midnight /ohlcv/latest switches to the day that has just ended, like 20m',
      )
        .argParser(parseDuration)
        .default(0, 'none'),
    )
    .option('--no-gzip', 'do not compress answers')
    .option('--json', 'print the address, and at the end the counters, each as one line of JSON')
    .action(
      context.action(async (options: Options) => {
        const { io, signal } = context;
        const simulator = openSimulator(context, options);
        const { host, port, gzip } = options;
        const server = await listen(simulator.fetch, { host, port, gzip, addDate: false });
        try {
          announce(io.out, server, options);
          await untilAborted(signal);
        } finally {
          await server.close();
        }
        if (options.json) printJson(io.out, simulator.counters());
        else io.out.write(`${summary(simulator)}\n`);
        return EXIT.done;
      }),
    );
}

function openSimulator({ clock, io, config }: CommandContext, options: Options): Simulator {
  const {
    market,
    key,
    unlimited = false,
    faults,
    seed,
    coins,
    latency,
    latestAfter,
    auth,
    requireRationale = false,
  } = options;
  return createSimulator({
    market,
    clock,
    seed,
    coins,
    limits: { plan: planOf(options), keys: key, scheme: auth },
    requireRationale,
    unlimited,
    faults,
    latencyMs: latency,
    latestTurnsAfterMs: latestAfter,
    origins: config().serveOrigins,
    onError: (error, url) => io.err.write(`error: ${url}: ${error instanceof Error ? error.message : String(error)}\n`),
  });
}

/** The fields and tools of a plan are limits as well. */
function planOf({ plan, unlimited = false }: Options): PlanName {
  return plan ?? (unlimited ? 'enterprise' : 'free');
}

function announce(out: Output, { url }: Listening, options: Options): void {
  const baseUrl = `${url}/v1`;
  if (options.json) {
    printJson(out, { baseUrl, counters: `${url}/simulator` });
    return;
  }
  const faults = Object.keys(options.faults.rates).length > 0 ? ', with faults' : '';
  const limits = options.unlimited ? 'no limits' : `the ${planOf(options)} plan's limits`;
  out.write(`Simulating a ${options.market} market with ${limits}${faults} at ${baseUrl}\n`);
  // A separate warehouse, because one that holds simulated candles refuses real ones.
  out.write(
    `Use it:   CHANDLER_HOME=.chandler/practice CHANDLER_BASE_URL=${baseUrl} npx chandler ${EXAMPLES[options.market]}\n`,
  );
  out.write(`Watch it: ${url}/simulator counts the requests. Ctrl-C ends it.\n`);
}

function summary(simulator: Simulator): string {
  const { requests, faults } = simulator.counters();
  const injected = Object.values(faults).reduce((sum, count) => sum + count, 0);
  return `Answered ${formatCounted(requests.total, 'request')} (${formatCount(requests.ohlcv)} for candles), ${formatCounted(injected, 'fault')}.`;
}

function parseKey(text: string, before: Readonly<Record<string, PlanName>>): Readonly<Record<string, PlanName>> {
  const at = text.lastIndexOf('=');
  if (at < 1) throw new UsageError('Write a key and its plan, like --key abc=pro.');
  return { ...before, [text.slice(0, at)]: choice(PLAN_NAMES)(text.slice(at + 1)) };
}

function parseFaults(text: string): FaultSpec {
  const parsed = parseFaultSpec(text);
  if (parsed.ok) return parsed.spec;
  throw new UsageError(`${parsed.problem}.`);
}
