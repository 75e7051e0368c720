/** `chandler demo`: everything in a minute: a real Postgres, a simulated upstream with recorded candles and faults, the proof, and SQL. */
import { existsSync, readdirSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { App } from '../../app.ts';
import { ROLES } from '../../background/health/service-status.ts';
import type { Config } from '../../config.ts';
import { makeApiKey, UNLIMITED } from '../../core/caller/api-key.ts';
import { formatCounted, formatDuration } from '../../core/format.ts';
import { listen } from '../../service/http/listen.ts';
import { createSimulator } from '../../simulate.ts';
import type { FaultSpec } from '../../simulator/faults/fault-spec.ts';
import { createApiKey } from '../../store/callers/api-key.ts';
import { stopEmbedded } from '../../store/embedded/embedded.ts';
import { readStatus } from '../../views/operations/status.ts';
import { backfill } from '../backfill/backfill.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT, type ExitCode, UsageError } from '../shell/exit.ts';
import { ownerName } from '../shell/owner.ts';
import { runSql } from '../sql/sql-run.ts';
import { printGaps } from './gaps.ts';
import { printStatus } from './status.ts';
import { verify } from './verify.ts';

/** Typical faults of an upstream on a bad day. They are seeded, so that every run shows the same. */
const FAULTS: FaultSpec = {
  seed: 11,
  rates: { '429': 0.02, '500': 0.03, '502': 0.02, reset: 0.03, truncated: 0.02, duplicates: 0.05, unsorted: 0.05 },
  mostInARow: 3,
};

const BACKFILLS = [
  {
    why: 'Years of daily candles of three coins. First the cost, under this plan and every other plan; then the backfill.',
    coins: ['btc-bitcoin', 'eth-ethereum', 'ltc-litecoin'],
    start: '2014-11-28',
    end: '2020-01-18',
    interval: '24h',
  },
  {
    why: 'Four years of hourly candles of one coin. Chandler repeats requests that got a faulty answer. You may kill it: nothing is lost.',
    coins: ['btc-bitcoin'],
    start: '2018-05-15',
    end: '2022-03-01',
    interval: '1h',
  },
] as const;

const QUERIES: readonly { readonly title: string; readonly sql: string }[] = [
  {
    title: 'Months from days: the first open, the highest high, the lowest low, the last close',
    sql: `select date_trunc('month', open_time)::date as month,
  (array_agg(open order by open_time))[1]::numeric(10,2) as open, max(high)::numeric(10,2) as high,
  min(low)::numeric(10,2) as low, (array_agg(close order by open_time desc))[1]::numeric(10,2) as close,
  sum(volume)::bigint as volume_usd, count(*) as days
from market.candles
where coin_id = 'btc-bitcoin' and interval = '24h' and open_time >= '2017-09-01' and open_time < '2018-03-01'
group by 1 order by 1`,
  },
  {
    title: 'Risk: yearly volatility, and the deepest fall from a high with the day it ended',
    sql: `with d as (
  select symbol, open_time, ln(close / lag(close) over w) as return, close / max(close) over w - 1 as fall
  from market.candles where interval = '24h' and is_final
  window w as (partition by symbol order by open_time)
)
select symbol, count(*) as days, round((100 * stddev(return) * sqrt(365))::numeric) || ' %' as volatility,
  round((100 * min(fall))::numeric) || ' %' as deepest_fall, (array_agg(open_time order by fall))[1]::date as on_day
from d group by 1 order by 1`,
  },
  {
    title: 'When bitcoin moves: the mean range of an hour by time of day (UTC), the widest and the calmest hours',
    sql: `with h as (
  select extract(hour from open_time)::int as hour, avg((high - low) / open) as spread, avg(volume) as volume
  from market.candles where coin_id = 'btc-bitcoin' and interval = '1h' and is_final group by 1
), ranked as (select *, rank() over (order by spread desc) as widest, rank() over (order by spread) as calmest from h)
select lpad(hour::text, 2, '0') || ':00' as hour, (100 * spread)::numeric(5,3) || ' %' as mean_range,
  volume::bigint as mean_volume_usd
from ranked where widest <= 3 or calmest <= 3 order by spread desc`,
  },
];

/** A file that marks the folder as made by a demo: the demo must not delete any other folder. */
const MARK = 'made-by-demo';

export function demoCommand(program: Command, context: CommandContext): void {
  program
    .command('demo')
    .description(
      'show how Chandler works, in a minute: recorded candles, injected faults, a real Postgres; no account needed',
    )
    .option('--stay', 'keep running as a service with a dashboard, until Ctrl-C')
    .action(context.action(({ stay = false }: { readonly stay?: boolean }) => demo(context, stay)));
}

async function demo(context: CommandContext, stays: boolean): Promise<ExitCode> {
  const { io, clock } = context;
  const startedAt = clock.now();
  const home = join(context.config().home, 'demo');
  const mark = join(home, MARK);
  if (existsSync(home) && !existsSync(mark) && readdirSync(home).length > 0) {
    throw new UsageError(
      `${home} was not made by an earlier demo; move it away, or choose another folder with CHANDLER_HOME`,
    );
  }
  // Every demo starts with an empty folder, because it shows a first run.
  await stopEmbedded({ home, clock });
  await rm(home, { recursive: true, force: true });
  // First of all, so that the next demo recognises the folder of a demo that was killed.
  await mkdir(home, { recursive: true });
  await writeFile(mark, 'This folder belongs to chandler demo, which empties it at every start.\n');

  const simulator = createSimulator({
    market: 'recorded',
    clock,
    unlimited: true,
    faults: FAULTS,
    onError: (error, url) => io.err.write(`simulator: ${url}: ${String(error)}\n`),
  });
  const server = await listen(simulator.fetch, { host: '127.0.0.1', port: 0 });
  try {
    const overrides: Partial<Config> = {
      databaseUrl: null,
      redisUrl: null,
      home,
      baseUrl: `${server.url}/v1`,
      apiKey: null,
      plan: 'enterprise',
      limits: {},
      candlesPerRequest: null,
    };
    printSection(
      context,
      'A simulated upstream',
      `This process serves recorded candles at ${server.url}/v1. It needs no account, and nothing leaves this machine.`,
      'About one answer in six is faulty on purpose: errors, cut connections, truncated or unsorted answers.',
    );
    return await context.withApp({ schema: 'migrate', handlesInterrupt: true, overrides }, async (app) => {
      printSection(
        context,
        'A Postgres of its own',
        `A real server, started in ${home}. It stops with the demo; its data stays.`,
      );
      const code = await showBackfills(app, context);
      if (code !== EXIT.done) return code;
      await showResults(app, context);
      const { requests, faults } = simulator.counters();
      const injected = Object.values(faults).reduce((sum, n) => sum + n, 0);
      printSection(
        context,
        `Done in ${formatDuration(clock.now() - startedAt)}`,
        `The upstream counted ${formatCounted(requests.total, 'request')} and answered ${injected} of them with a fault. The reports above show every request.`,
        `Look around:             CHANDLER_HOME=${home} npx chandler sql "select * from market.candles limit 5"`,
        ...(stays
          ? []
          : [`In a browser:            CHANDLER_HOME=${home} npx chandler ui, then http://127.0.0.1:8081/`]),
        'The real upstream gives a year of daily prices without a key, in one request a coin:',
        '  npx chandler backfill --top 50 --start -365d --series prices',
      );
      if (stays) await stay(app, context);
      return EXIT.done;
    });
  } finally {
    await server.close();
  }
}

/** Continues as a service over the same warehouse and upstream, so that the user can try the dashboard, with a key to change something. */
async function stay({ config, database: { sql }, clock }: App, context: CommandContext): Promise<void> {
  const { prefix, key, hash } = makeApiKey();
  const terms = { plan: UNLIMITED, requestsPerMonth: null, requestsPerSecond: null, expiresAt: null };
  await createApiKey(sql, { name: 'demo', isOperator: true, ...terms }, { prefix, hash, now: clock.now() });
  const { runService } = await import('../../background/service/service.ts');
  await runService({
    config,
    clock: context.clock,
    log: context.log({ ...config, logLevel: 'warn' }),
    roles: ROLES,
    owner: ownerName(process.pid),
    concurrency: 4,
    migrate: false,
    signal: context.signal,
    onListening: (url) =>
      printSection(
        context,
        'The dashboard',
        `It is at ${url}/ until you press Ctrl-C, on top of a service that continues with the same simulated upstream.`,
        `To change something there, sign in with ${key}`,
      ),
  });
}

async function showBackfills(app: App, context: CommandContext): Promise<ExitCode> {
  for (const [i, { why, coins, start, end, interval }] of BACKFILLS.entries()) {
    introduce(
      context,
      `chandler backfill ${coins.join(' ')} --interval ${interval} --start ${start} --end ${end}`,
      why,
    );
    const options = {
      start,
      end,
      series: 'candles',
      interval: [interval],
      quote: 'usd',
      yes: true,
      maxWait: 60_000,
      concurrency: 4,
    } as const;
    // The table of the other plans is shown only once.
    const code = await backfill(app, context, coins, { ...options, brief: i > 0 });
    // The slots after the last recorded candle wait an hour for a second answer. The list of gaps shows them.
    if (code !== EXIT.done && code !== EXIT.stoppedEarly) return code;
  }
  return EXIT.done;
}

async function showResults({ database, clock }: App, context: CommandContext): Promise<void> {
  const { io, signal } = context;
  introduce(context, 'chandler status', 'The wanted series, and how much of each has its final answer.');
  printStatus(io.out, await readStatus(database.sql, clock.now()), clock.now());
  introduce(
    context,
    'chandler gaps',
    'Every missing slot has a reason. An empty slot at the edge of an answer stays unconfirmed until a second answer, an hour later, agrees.',
  );
  await printGaps(context, database.sql, {}, 10);
  introduce(
    context,
    'chandler verify',
    'The proof: Chandler recomputes the digest of each stored answer. Two warehouses with the same hashes hold the same candles.',
  );
  await verify(io, database.sql, {}, clock.now());
  for (const { title, sql } of QUERIES) {
    printSection(context, title);
    io.out.write(`${sql.replace(/^/gm, '    ')}\n\n`);
    await runSql(io.out, { url: database.url, text: sql, json: false, signal });
  }
}

/** Prints a heading, and explains what follows. */
function printSection({ io }: CommandContext, title: string, ...sentences: readonly string[]): void {
  io.out.write(`\n${io.out.bold(`▸ ${title}`)}\n${sentences.map((sentence) => `${sentence}\n`).join('')}`);
}

/** The same before the output of a command. */
function introduce(context: CommandContext, title: string, sentence: string): void {
  printSection(context, title, sentence, '');
}
