/** The command line: argv → command → exit code. Commands are added one by one, each from its own file. */
import { Command, CommanderError, type Option } from 'commander';
import { VERSION } from '../core/version.ts';
import { maskPasswords } from '../log.ts';
import { printJsonError } from './output/json.ts';
import { type CliDeps, type CommandContext, createContext } from './shell/context.ts';
import { EXIT, type ExitCode } from './shell/exit.ts';
import { explain } from './shell/explain-error.ts';

type AddCommand = (program: Command, context: CommandContext) => void;

/**
 * In the order the help shows them. Each is loaded when it is the one to run: all of them together are half a second of processor
 * time and 20 MB, and no command needs the parts of all.
 */
const COMMANDS: Readonly<Record<string, () => Promise<AddCommand>>> = {
  demo: async () => (await import('./commands/demo.ts')).demoCommand,
  plan: async () => (await import('./backfill/plan.ts')).planCommand,
  backfill: async () => (await import('./backfill/backfill.ts')).backfillCommand,
  track: async () => (await import('./track/track.ts')).trackCommand,
  status: async () => (await import('./commands/status.ts')).statusCommand,
  gaps: async () => (await import('./commands/gaps.ts')).gapsCommand,
  verify: async () => (await import('./commands/verify.ts')).verifyCommand,
  quota: async () => (await import('./commands/quota.ts')).quotaCommand,
  backfills: async () => (await import('./commands/backfills.ts')).backfillsCommand,
  schedule: async () => (await import('./commands/schedule.ts')).scheduleCommand,
  service: async () => (await import('./commands/service.ts')).serviceCommand,
  serve: async () => (await import('./commands/serve.ts')).serveCommand,
  keys: async () => (await import('./commands/keys.ts')).keysCommand,
  sql: async () => (await import('./sql/sql.ts')).sqlCommand,
  migrate: async () => (await import('./commands/migrate.ts')).migrateCommand,
  doctor: async () => (await import('./doctor/doctor.ts')).doctorCommand,
  simulate: async () => (await import('./commands/simulate.ts')).simulateCommand,
};

/** Knows the command that `argv` begins with; all of them, when it begins with none: for the help, and to tell what was misspelt. */
async function createProgram(argv: readonly string[], context: CommandContext): Promise<Command> {
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
  const [first = ''] = argv;
  if (first === '--version' || first === '-V') return program;
  const wanted = Object.hasOwn(COMMANDS, first) ? [COMMANDS[first]!] : Object.values(COMMANDS);
  for (const add of await Promise.all(wanted.map((load) => load()))) add(program, context);
  return program;
}

/** With its default as one would type it; a default that cannot be typed is none. */
function describeOption({ description, required, defaultValue, defaultValueDescription }: Option): string {
  const isTyped = typeof defaultValue === 'string' || typeof defaultValue === 'number';
  const typed = defaultValueDescription ?? (isTyped ? String(defaultValue) : undefined);
  return required && typed !== undefined ? `${description} (default: ${typed})` : description;
}

/**
 * `help keys create` as `keys create --help`, because commander would show the help of `keys`; and a word that is no command without
 * what follows it, because `--help` behind it would be all that commander sees.
 */
function unambiguous(argv: readonly string[]): string[] {
  const [first = '', ...rest] = argv;
  const words = rest.filter((word) => !word.startsWith('-'));
  if (first === 'help' && words.length > 0) return unambiguous([...words, '--help']);
  const isWord = first !== '' && first !== 'help' && !first.startsWith('-');
  return isWord && !Object.hasOwn(COMMANDS, first) ? [first] : [...argv];
}

/** Runs one command line (without `node` and the script) to its exit code. Never throws, never exits. */
export async function runCli(argv: readonly string[], deps: CliDeps): Promise<ExitCode> {
  let code: ExitCode = EXIT.done;
  const context = createContext(deps, (ended) => {
    code = ended;
  });
  try {
    const line = unambiguous(argv);
    const program = await createProgram(line, context);
    await program.parseAsync(line, { from: 'user' });
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
