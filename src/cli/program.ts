/** The command line: runs the command that the arguments name, and resolves to its exit code. */
import { Command, CommanderError, type Option } from 'commander';
import { VERSION } from '../core/version.ts';
import { maskPasswords } from '../log.ts';
import { type CliDeps, type CommandContext, createContext } from './shell/context.ts';
import { EXIT, type ExitCode } from './shell/exit.ts';
import { explain } from './shell/explain-error.ts';
import { printJsonError } from './shell/json.ts';

type AddCommand = (program: Command, context: CommandContext) => void;

/** In the order of the help. Only the requested command is loaded: loading all of them costs half a second of processor time. */
const COMMANDS: Readonly<Record<string, () => Promise<AddCommand>>> = {
  demo: async () => (await import('./commands/demo.ts')).demoCommand,
  plan: async () => (await import('./backfill/plan.ts')).planCommand,
  backfill: async () => (await import('./backfill/backfill.ts')).backfillCommand,
  track: async () => (await import('./track/track.ts')).trackCommand,
  status: async () => (await import('./commands/status.ts')).statusCommand,
  gaps: async () => (await import('./commands/gaps.ts')).gapsCommand,
  explain: async () => (await import('./commands/explain.ts')).explainCommand,
  verify: async () => (await import('./commands/verify.ts')).verifyCommand,
  attest: async () => (await import('./commands/attest.ts')).attestCommand,
  quota: async () => (await import('./commands/quota.ts')).quotaCommand,
  backfills: async () => (await import('./commands/backfills.ts')).backfillsCommand,
  schedule: async () => (await import('./commands/schedule.ts')).scheduleCommand,
  log: async () => (await import('./commands/log.ts')).logCommand,
  service: async () => (await import('./commands/service.ts')).serviceCommand,
  ui: async () => (await import('./commands/ui.ts')).uiCommand,
  serve: async () => (await import('./commands/serve.ts')).serveCommand,
  keys: async () => (await import('./access/keys.ts')).keysCommand,
  analyst: async () => (await import('./access/analyst.ts')).analystCommand,
  db: async () => (await import('./access/db.ts')).dbCommand,
  sql: async () => (await import('./sql/sql.ts')).sqlCommand,
  export: async () => (await import('./files/export.ts')).exportCommand,
  import: async () => (await import('./files/import.ts')).importCommand,
  lake: async () => (await import('./files/lake.ts')).lakeCommand,
  backup: async () => (await import('./backup/backup.ts')).backupCommand,
  restore: async () => (await import('./backup/restore.ts')).restoreCommand,
  migrate: async () => (await import('./commands/migrate.ts')).migrateCommand,
  doctor: async () => (await import('./doctor/doctor.ts')).doctorCommand,
  simulate: async () => (await import('./commands/simulate.ts')).simulateCommand,
};

/** Contains the command that `argv` begins with, or all commands when it begins with none of them. */
async function createProgram(argv: readonly string[], context: CommandContext): Promise<Command> {
  const { io } = context;
  const program = new Command('chandler')
    .description('Fills and keeps a Postgres warehouse of crypto market data from one quota-limited HTTP API.')
    .version(VERSION)
    .exitOverride()
    .showHelpAfterError('(--help shows the commands and options)')
    .configureHelp({ sortOptions: false, optionDescription: describeOption })
    .configureOutput({
      writeOut: (text) => io.out.write(text),
      writeErr: (text) => io.err.write(text),
      getOutHelpWidth: () => io.out.columns() ?? 100,
      getErrHelpWidth: () => io.err.columns() ?? 100,
      outputError: (text, write) => write(inPlainWords(text)),
    })
    .addHelpText(
      'after',
      '\nExit codes: 0 all done, 1 something was refused or failed, 2 wrong usage or configuration,\n' +
        '75 stopped early with work left (run the command again, nothing is lost), 130 interrupted.',
    );
  const [first = ''] = argv;
  if (first === '--version' || first === '-V') return program;
  const wanted = Object.hasOwn(COMMANDS, first) ? [COMMANDS[first]!] : Object.values(COMMANDS);
  for (const add of await Promise.all(wanted.map((load) => load()))) add(program, context);
  return program;
}

/** For a wrong argument, commander writes `command-argument value '2h' is invalid for argument 'interval'`. */
function inPlainWords(error: string): string {
  return error.replace(
    /command-argument value '(.*)' is invalid for argument '(\S+)'/,
    "argument <$2>: '$1' is invalid",
  );
}

/** The description with its default value, if the user can type that value. */
function describeOption({ description, required, defaultValue, defaultValueDescription }: Option): string {
  const isTyped = typeof defaultValue === 'string' || typeof defaultValue === 'number';
  const typed = defaultValueDescription ?? (isTyped ? String(defaultValue) : undefined);
  return required && typed !== undefined ? `${description} (default: ${typed})` : description;
}

/**
 * Rewrites what commander would misunderstand: `help keys create` becomes `keys create --help`, and neither a relative time of `explain`
 * nor a statement that begins with a comment is an option. Of an unknown command it keeps only the name, because a `--help` after it would hide the error.
 */
function unambiguous(argv: readonly string[]): string[] {
  const [first = '', ...rest] = argv;
  const words = rest.filter((word) => !word.startsWith('-'));
  if (first === 'help' && words.length > 0) return unambiguous([...words, '--help']);
  if (first === 'explain') return argv.map((word) => (/^-\d/.test(word) ? `now${word}` : word));
  if (first === 'sql') return argv.map((word) => (/^--(\s|[^\n]*\n)/.test(word) ? ` ${word}` : word));
  const isWord = first !== '' && first !== 'help' && !first.startsWith('-');
  return isWord && !Object.hasOwn(COMMANDS, first) ? [first] : [...argv];
}

/** Runs one command line (without `node` and the script) and resolves to its exit code. Never throws, never exits. */
export async function runCli(argv: readonly string[], deps: CliDeps): Promise<ExitCode> {
  let code: ExitCode = EXIT.done;
  const line = unambiguous(argv);
  const context = createContext(
    deps,
    (ended) => {
      code = ended;
    },
    line,
  );
  try {
    const program = await createProgram(line, context);
    await program.parseAsync(line, { from: 'user' });
    return code;
  } catch (error) {
    const { io } = deps;
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return EXIT.done;
      // Commander has already written its message, after the word `error:`.
      if (argv.includes('--json')) printJsonError(io.out, error.message.replace(/^error: /, ''), EXIT.usage);
      return EXIT.usage;
    }
    const explained = explain(error);
    const { exitCode, isUnexpected } = explained;
    const message = maskPasswords(explained.message);
    io.err.write(`error: ${message}\n`);
    if (argv.includes('--json')) printJsonError(io.out, message, exitCode);
    if (isUnexpected && /^(debug|trace)$/.test(deps.env.LOG_LEVEL ?? '') && error instanceof Error) {
      io.err.write(`${maskPasswords(error.stack ?? '')}\n`);
    }
    return exitCode;
  }
}
