/** `chandler db`: lets psql, DBeaver, pandas and Grafana use the embedded server, also while no command of Chandler runs. */
import type { Command } from 'commander';
import { formatBytes, formatCounted, formatInstant, formatRelative, withIso } from '../../core/format.ts';
import { createClient } from '../../store/connection/connect.ts';
import { addressForOthers } from '../../store/connection/database-url.ts';
import { explainDatabaseError, maskUrl } from '../../store/connection/store-error.ts';
import { findEmbedded, keepEmbedded, stopEmbedded, useOfEmbedded } from '../../store/embedded/embedded.ts';
import { printPairs } from '../output/table.ts';
import type { CommandContext } from '../shell/context.ts';
import { CommandFailed, EXIT, UsageError } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';
import { printJson } from '../shell/json.ts';

type Options = { readonly json?: boolean };

export function dbCommand(program: Command, context: CommandContext): void {
  const db = program
    .command('db')
    .description('let psql, DBeaver, pandas and Grafana use the embedded server: url, start, stop, status');
  urlCommand(db, context);
  startCommand(db, context);
  stopCommand(db, context);
  statusCommand(db, context);
}

function urlCommand(db: Command, context: CommandContext): void {
  db.command('url')
    .description('print the address of the database, with its password: psql "$(chandler db url)"')
    .option('--json', 'print JSON')
    .action(
      context.action(async ({ json }: Options) => {
        const { databaseUrl, home } = context.config();
        const found = databaseUrl === null ? findEmbedded(home) : null;
        if (databaseUrl === null && found === null)
          throw new CommandFailed(`${notRunning(home)}; chandler db start starts it, and it keeps running`);
        const url = addressForOthers(databaseUrl ?? found!.url);
        // Written past the mask of secrets, because the user requested this password.
        context.io.out.stream.write(json ? `${JSON.stringify({ url })}\n` : `${url}\n`);
        return EXIT.done;
      }),
    );
}

function startCommand(db: Command, context: CommandContext): void {
  db.command('start')
    .description('start the embedded server; it keeps running until chandler db stop')
    .option('--json', 'print JSON')
    .action(
      context.action(async ({ json }: Options) => {
        const home = homeOf(context);
        await context.withApp({ schema: 'prepare' }, async ({ database }) => {
          keepEmbedded(home);
          const url = addressForOthers(database.url);
          const { out } = context.io;
          if (json) return printJson(out, { url, home });
          out.write(`${url}\n\n`);
          out.write('It runs until chandler db stop, even while no command of Chandler runs.\n');
          out.write(
            'With this address everything can be changed; chandler analyst create makes one that may only read.\n',
          );
        });
        return EXIT.done;
      }),
    );
}

function stopCommand(db: Command, context: CommandContext): void {
  db.command('stop')
    .description('stop the embedded server, and end the sessions on it')
    .option(
      '--force',
      'stop it even while commands of Chandler use it: they fail, and a service waits until it is back',
    )
    .option('--json', 'print JSON')
    .action(
      context.action(async ({ force: isForced = false, json }: Options & { readonly force?: boolean }) => {
        const home = homeOf(context);
        const stop = await stopEmbedded({ home, clock: context.clock, isForced });
        if (typeof stop === 'object') {
          const users = `${stop.usedBy.length === 1 ? 'process' : 'processes'} ${stop.usedBy.join(', ')}`;
          throw new CommandFailed(
            `Chandler itself uses the embedded server in ${home} (${users}); let that end first, or give --force`,
          );
        }
        const { out } = context.io;
        if (json) printJson(out, { home, stopped: stop === 'stopped' });
        else out.write(stop === 'stopped' ? 'The embedded server is stopped.\n' : `${sentence(notRunning(home))}.\n`);
        return EXIT.done;
      }),
    );
}

type Details = {
  readonly version: string;
  readonly bytes: number;
  readonly startedAt: number;
  readonly sessions: readonly { readonly application: string; readonly count: number }[];
};

function statusCommand(db: Command, context: CommandContext): void {
  db.command('status')
    .description('show whether the embedded server runs, where, and who uses it; starts nothing')
    .option('--json', 'print JSON')
    .action(
      context.action(async ({ json }: Options) => {
        const home = homeOf(context);
        const found = findEmbedded(home);
        const { out } = context.io;
        if (found === null) {
          if (json) printJson(out, { home, running: false });
          else out.write(`${sentence(notRunning(home))}; chandler db start starts it, and it keeps running.\n`);
          return EXIT.done;
        }
        const details = await readDetails(found.url);
        const use = useOfEmbedded(home);
        const { port } = new URL(found.url);
        if (json)
          printJson(out, {
            home,
            running: true,
            pid: found.pid,
            port: Number(port),
            ...use,
            ...withIso(details, 'startedAt'),
          });
        else printStatus(out, { ...found, ...use, ...details, home, now: context.clock.now() });
        return EXIT.done;
      }),
    );
}

type Status = Details &
  ReturnType<typeof useOfEmbedded> & {
    readonly home: string;
    readonly url: string;
    readonly pid: number;
    readonly now: number;
  };

function printStatus(out: Output, status: Status): void {
  const { url, pid, home, stays, usedBy, version, bytes, startedAt, sessions, now } = status;
  const clients = sessions.map(({ application, count }) => `${application || 'no name'} (${count})`);
  printPairs(out, [
    ['address', maskUrl(addressForOthers(url))],
    [
      'server',
      `Postgres ${version}, process ${pid}, since ${formatInstant(startedAt)} (${formatRelative(startedAt, now)})`,
    ],
    ['data', `${formatBytes(bytes)} in ${home}`],
    ['sessions', clients.length === 0 ? 'none' : clients.join(', ')],
    [
      'used by',
      usedBy.length === 0
        ? 'no command of Chandler'
        : `${formatCounted(usedBy.length, 'command')} of Chandler (${usedBy.join(', ')})`,
    ],
    ['ends', stays ? 'with chandler db stop' : 'with the last command or session; chandler db start lets it stay'],
  ]);
}

async function readDetails(url: string): Promise<Details> {
  const sql = createClient({ url, max: 1, applicationName: 'chandler db' });
  try {
    const [server] = await sql<Omit<Details, 'sessions'>[]>`
      select current_setting('server_version') as version, pg_database_size(current_database()) as bytes,
        pg_postmaster_start_time() as started_at`;
    const sessions = await sql<Details['sessions'][number][]>`
      select application_name as application, count(*) as count from pg_stat_activity
      where backend_type = 'client backend' and pid <> pg_backend_pid() group by 1 order by 1`;
    return { ...server!, sessions };
  } catch (error) {
    throw explainDatabaseError(error, url) ?? error;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** @throws UsageError when the warehouse is in a server that Chandler does not start and stop */
function homeOf(context: CommandContext): string {
  const { databaseUrl, home } = context.config();
  if (databaseUrl === null) return home;
  throw new UsageError(
    'DATABASE_URL is set, and Chandler does not start or stop that server; chandler doctor checks it, and chandler db url shows its address',
  );
}

const notRunning = (home: string) => `the embedded server in ${home} does not run`;

const sentence = (text: string) => text[0]!.toUpperCase() + text.slice(1);
