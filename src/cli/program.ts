/** The command line: argv → command → exit code. Commands are added one by one, each from its own file. */
import { Command, CommanderError, type Option } from 'commander';
import { VERSION } from '../core/version.ts';
import { maskPasswords } from '../log.ts';
import { backfillCommand } from './backfill.ts';
import { backfillsCommand } from './backfills.ts';
import { type CliDeps, type CommandContext, createContext } from './context.ts';
import { demoCommand } from './demo.ts';
import { doctorCommand } from './doctor.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { explain } from './explain.ts';
import { gapsCommand } from './gaps.ts';
import { printJsonError } from './json.ts';
import { keysCommand } from './keys.ts';
import { migrateCommand } from './migrate.ts';
import { planCommand } from './plan.ts';
import { quotaCommand } from './quota.ts';
import { scheduleCommand } from './schedule.ts';
import { serveCommand } from './serve.ts';
import { serviceCommand } from './service.ts';
import { simulateCommand } from './simulate.ts';
import { sqlCommand } from './sql.ts';
import { statusCommand } from './status.ts';
import { trackCommand } from './track.ts';
import { verifyCommand } from './verify.ts';

/** In the order the help shows them. */
const COMMANDS: readonly ((program: Command, context: CommandContext) => void)[] = [
  demoCommand,
  planCommand,
  backfillCommand,
  trackCommand,
  statusCommand,
  gapsCommand,
  verifyCommand,
  quotaCommand,
  backfillsCommand,
  scheduleCommand,
  serviceCommand,
  serveCommand,
  keysCommand,
  sqlCommand,
  migrateCommand,
  doctorCommand,
  simulateCommand,
];

export function createProgram(context: CommandContext): Command {
  const { io } = context;
  const program = new Command('chandler')
    .description('Fills and keeps a Postgres warehouse of crypto market data from one quota-limited HTTP API.')
    .version(VERSION)
    .exitOverride()
    .showHelpAfterError('(--help shows what there is)')
    .configureHelp({ sortOptions: false, optionDescription: describeOption })
    .configureOutput({
      writeOut: (text) => io.out.write(text),
      writeErr: (text) => io.err.write(text),
      getOutHelpWidth: () => io.out.columns() ?? 100,
      getErrHelpWidth: () => io.err.columns() ?? 100,
    })
    .addHelpText(
      'after',
      '\nExit codes: 0 all done, 1 something was refused or failed, 2 wrong usage or configuration,\n' +
        '75 stopped early with work left (run it again, nothing is lost), 130 interrupted.',
    );
  for (const add of COMMANDS) add(program, context);
  return program;
}

/** With its default as one would type it; a default that cannot be typed is none. */
function describeOption({ description, required, defaultValue, defaultValueDescription }: Option): string {
  const isTyped = typeof defaultValue === 'string' || typeof defaultValue === 'number';
  const typed = defaultValueDescription ?? (isTyped ? String(defaultValue) : undefined);
  return required && typed !== undefined ? `${description} (default: ${typed})` : description;
}

/** Runs one command line (without `node` and the script) to its exit code. Never throws, never exits. */
export async function runCli(argv: readonly string[], deps: CliDeps): Promise<ExitCode> {
  let code: ExitCode = EXIT.done;
  const context = createContext(deps, (ended) => {
    code = ended;
  });
  try {
    await createProgram(context).parseAsync(argv as string[], { from: 'user' });
    return code;
  } catch (error) {
    const { io } = deps;
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return EXIT.done;
      // Commander has already written its message, with a word before it that says what it is.
      if (argv.includes('--json')) printJsonError(io.out, error.message.replace(/^error: /, ''), EXIT.usage);
      return EXIT.usage;
    }
    const explained = explain(error);
    const { exitCode, isOurs } = explained;
    const message = maskPasswords(explained.message);
    io.err.write(`error: ${message}\n`);
    if (argv.includes('--json')) printJsonError(io.out, message, exitCode);
    if (isOurs && /^(debug|trace)$/.test(deps.env.LOG_LEVEL ?? '') && error instanceof Error) {
      io.err.write(`${maskPasswords(error.stack ?? '')}\n`);
    }
    return exitCode;
  }
}
