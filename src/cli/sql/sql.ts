/** `chandler sql`: opens psql on the warehouse, or runs statements and prints their results. */
import { spawn } from 'node:child_process';
import { text as readAll } from 'node:stream/consumers';
import type { Command } from 'commander';
import { maskPasswords } from '../../log.ts';
import type { Environment } from '../../settings.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { printable } from '../output/table.ts';
import { audited, auditedIfChanging } from '../shell/audited.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT, type ExitCode, UsageError } from '../shell/exit.ts';
import { findPrograms } from '../shell/find-program.ts';
import { withoutPasswords } from './sql-kind.ts';
import { runSql } from './sql-run.ts';

export function sqlCommand(program: Command, context: CommandContext): void {
  program
    .command('sql')
    .description('open psql on the warehouse, or run the given or piped statements and print their rows')
    .argument('[statement]', 'SQL statements, separated by semicolons')
    .option('--json', 'print rows as JSON, an array for each statement')
    .addHelpText('after', '\nExample: chandler sql "select * from market.coverage where slots_missing > 0"')
    .action(
      context.action(async (statement: string | undefined, options: { json?: boolean }) => {
        const piped = statement === undefined && context.io.in.isTTY !== true;
        const text = piped ? await readAll(context.io.in) : statement;
        if (text === undefined || text.trimStart().startsWith('\\')) return openPsql(context, text);
        if (text.trim() === '')
          throw new UsageError('there is no statement to run; give it as an argument, or pipe it in');
        await context.withApp({ schema: 'require', handlesInterrupt: true }, (app) =>
          auditedIfChanging(app, ['sql', maskPasswords(withoutPasswords(text.trim()))], (onChange) =>
            runSql(context.io.out, {
              url: app.database.url,
              text,
              json: options.json === true,
              signal: context.signal,
              onChange,
              onNote: (note) => context.io.err.write(`note: ${printable(note)}\n`),
            }),
          ),
        );
        return EXIT.done;
      }),
    );
}

/** Opens a psql session, or runs a backslash command like `\d market.candles`, which only psql knows. */
function openPsql(context: CommandContext, command: string | undefined): Promise<ExitCode> {
  const [psql] = findPrograms('psql', context.env);
  if (psql === undefined) {
    const purpose = command === undefined ? '' : ` for ${command.trim()}`;
    throw new UsageError(
      `psql is not on the PATH${purpose}; give a statement instead: chandler sql "select * from market.coverage"`,
    );
  }
  const args = command === undefined ? [] : ['--command', command.trim()];
  return context.withApp({ schema: 'require', handlesInterrupt: true }, async (app) => {
    const { sql, url } = app.database;
    const run = async () => {
      const code = await context.withoutInterrupts(() => runPsql(psql, args, url, context.env));
      return code === 0 ? EXIT.done : EXIT.failed;
    };
    // Chandler cannot see what happens in psql, so it assumes that the session may change something.
    const mayChange = !DESCRIBES.test(command?.trim() ?? '') && !(await isReadOnly(sql));
    return mayChange ? audited(app, ['sql', ...args.slice(1)], run) : run();
  });
}

/** Commands of psql that only show what exists. */
const DESCRIBES = /^\\(d|l|z|s[fv]|h|\?)/;

/** A standby allows no changes, and no records of them. */
async function isReadOnly(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ is: boolean }[]>`select current_setting('transaction_read_only') = 'on' as is`;
  return row!.is;
}

/** Runs psql on this terminal; resolves to its exit code. The password is passed in the environment, where `ps` does not show it. */
function runPsql(file: string, args: readonly string[], url: string, env: Environment): Promise<number> {
  const { address, password } = withoutPassword(url);
  const ours = { PGAPPNAME: 'chandler sql', PGTZ: 'UTC', ...(password === '' ? {} : { PGPASSWORD: password }) };
  return new Promise((resolve, reject) => {
    const child = spawn(file, ['--dbname', address, ...args], { stdio: 'inherit', env: { ...env, ...ours } });
    child.on('error', reject);
    child.on('close', (code) => resolve(code ?? 1));
  });
}

function withoutPassword(url: string): { address: string; password: string } {
  const parsed = new URL(url);
  const password = decodeURIComponent(parsed.password);
  parsed.password = '';
  return { address: parsed.href, password };
}
