/** `chandler analyst`: manages the logins with which analysts read the warehouse. */
import type { Command } from 'commander';
import { checkReaders } from '../../background/doctor/analyst-checks.ts';
import { makePassword, scramVerifier } from '../../core/caller/database-password.ts';
import { formatDuration } from '../../core/format.ts';
import { DAY } from '../../core/interval.ts';
import { didYouMeanOr, nearestNames } from '../../core/settings/did-you-mean.ts';
import {
  type AnalystLogin,
  createAnalystLogin,
  dropAnalystLogin,
  listAnalystLogins,
} from '../../store/callers/analyst-login.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { addressForOthers } from '../../store/connection/database-url.ts';
import { integer } from '../input/options.ts';
import { parseDuration } from '../input/time.ts';
import { number, printTable, text, whole } from '../output/table.ts';
import type { CommandContext } from '../shell/context.ts';
import { CommandFailed, UsageError } from '../shell/exit.ts';

const CONNECTIONS = 5;
const STATEMENT_TIMEOUT_MS = 60_000;

export function analystCommand(program: Command, context: CommandContext): void {
  const analyst = program
    .command('analyst')
    .description('manage the logins with which analysts read the schema market: create, list, drop');
  createCommand(analyst, context);
  listCommand(analyst, context);
  dropCommand(analyst, context);
}

/** 0 would be no limit, and Postgres accepts less than 25 days. */
function parseTimeout(text: string): number {
  const ms = parseDuration(text);
  if (ms >= 1_000 && ms <= 24 * DAY) return ms;
  throw new UsageError('It must be between 1s and 24d.');
}

type CreateOptions = { readonly connections?: number; readonly statementTimeout?: number };

function createCommand(analyst: Command, context: CommandContext): void {
  const command = analyst
    .command('create')
    .description('create a login that reads the schema market, and show its address once')
    .argument('<name>', 'letters, digits and _', parseName)
    .option('--connections <n>', `connections at the same time (default: ${CONNECTIONS})`, integer(1, 1_000))
    .option('--statement-timeout <time>', 'how long a statement may run (default: 1m)', parseTimeout);
  context.answer(
    command,
    async (app, name: string, options: CreateOptions) => {
      const { sql, url } = app.database;
      const { connections = CONNECTIONS, statementTimeout: statementTimeoutMs = STATEMENT_TIMEOUT_MS } = options;
      const password = makePassword();
      const login = { name, verifier: scramVerifier(password), connections, statementTimeoutMs };
      await createAnalystLogin(sql, login).catch((error: unknown) => {
        throw explained(error, name) ?? error;
      });
      const check = await checkReaders(app);
      if (check.state !== 'ok') context.io.err.write(`Warning: ${check.found}.\n  ${check.fix}\n`);
      const address = new URL(url);
      Object.assign(address, { username: name, password });
      const shown = addressForOthers(address.href);
      return {
        json: () => ({ name, url: shown, connections, statementTimeoutMs }),
        text: (out) =>
          out.write(
            `${shown}\n\nCopy the address now: Chandler does not store the password and cannot show it again.\nIts times are UTC, and it can only read.\n`,
          ),
      };
    },
    { schema: 'require', changes: true },
  );
}

function listCommand(analyst: Command, context: CommandContext): void {
  const command = analyst.command('list').description('show the logins that may read the schema market');
  context.answer(command, async ({ database: { sql } }) => {
    const logins = await listAnalystLogins(sql);
    return {
      json: () => logins,
      text: (out) => {
        if (logins.length === 0) return out.write('There are no logins; create one with chandler analyst create.\n');
        printTable(out, logins, [
          whole('name', ({ name }) => name),
          number('sessions', ({ sessions }) => sessions),
          number('at most', ({ connections }) => connections ?? 'unlimited'),
          text('a statement may run', ({ statementTimeoutMs: ms }) => (ms === null ? 'unlimited' : formatDuration(ms))),
          text('made by', ({ isOurs }) => (isOurs ? 'chandler analyst' : 'somebody else')),
        ]);
      },
    };
  });
}

function dropCommand(analyst: Command, context: CommandContext): void {
  const command = analyst
    .command('drop')
    .description('end the sessions of a login and remove it')
    .argument('<name>', 'as the list shows it');
  context.answer(
    command,
    async ({ database: { sql } }, name: string) => {
      const { sessions } = await ourLogin(sql, name);
      await dropAnalystLogin(sql, name).catch((error: unknown) => {
        if ((error as { readonly code?: string }).code !== '42501') throw error;
        throw new CommandFailed(
          `the user of DATABASE_URL may not remove ${name} (${(error as Error).message}); let the user that created it, or an administrator, run this command`,
        );
      });
      const ended =
        sessions === 0 ? '' : `; ${sessions === 1 ? 'its session was' : `its ${sessions} sessions were`} ended`;
      return { json: () => ({ name, sessions }), text: (out) => out.write(`${name} is removed${ended}.\n`) };
    },
    { schema: 'require', changes: true },
  );
}

/** @throws UsageError when no login has this name, or somebody else made it */
async function ourLogin(sql: Sql, name: string): Promise<AnalystLogin> {
  const logins = await listAnalystLogins(sql);
  const login = logins.find((one) => one.name === name);
  if (login === undefined) {
    const near = nearestNames(
      name,
      logins.map((one) => one.name),
    );
    throw new UsageError(
      `There is no login ${name} of an analyst; ${didYouMeanOr(near, 'chandler analyst list shows them.')}`,
    );
  }
  if (!login.isOurs)
    throw new UsageError(`The login ${name} was not created by chandler analyst; remove it in the way you created it.`);
  return login;
}

/** Rejects names that Postgres reserves or that Chandler uses itself. */
function parseName(name: string): string {
  if (/^[a-z_][a-z0-9_]{0,62}$/.test(name) && !/^(pg_|chandler_)/.test(name) && name !== 'analyst') return name;
  throw new UsageError(
    'It must be 1 to 63 lower-case letters, digits and _, begin with a letter, but not with pg_ or chandler_.',
  );
}

function explained(error: unknown, name: string): Error | null {
  switch ((error as { readonly code?: string }).code) {
    case '42710':
      return new UsageError(`There is a role ${name} already; choose another name.`);
    case '42704':
      return new CommandFailed('there is no role analyst; run chandler migrate as a user that may create roles');
    case '42501':
      return new CommandFailed(
        'the user of DATABASE_URL may not create or change roles; let an administrator run this command, or: alter role … createrole',
      );
    default:
      return null;
  }
}
