/** What every command receives: streams, clock, configuration, and the ways to open the warehouse and to print an answer. */
import type { Command } from 'commander';
import type { App, AppOptions } from '../../app.ts';
import type { Clock } from '../../clock.ts';
import { type Config, parseConfig } from '../../config.ts';
import { unlessAborted } from '../../core/concurrency/unless-aborted.ts';
import { createLog, type Log } from '../../log.ts';
import type { Environment } from '../../settings.ts';
import { isLocked } from '../../store/connection/database-unavailable.ts';
import { explainWithHolder } from '../../store/connection/lock.ts';
import { StoreError } from '../../store/connection/store-error.ts';
import { findEmbedded } from '../../store/embedded/embedded.ts';
import { explainLostServer } from '../../store/embedded/server-failure.ts';
import { audited, noteMigration } from './audited.ts';
import { openCommandApp } from './command-app.ts';
import { EXIT, type ExitCode, UsageError } from './exit.ts';
import type { Io, Output } from './io.ts';
import { printJson } from './json.ts';
import { secretsOf } from './secrets.ts';

export type CliDeps = {
  readonly io: Io;
  readonly clock: Clock;
  readonly env: Environment;
  /** Aborted by the first Ctrl-C or SIGTERM, with an `Interrupted` as its reason. */
  readonly signal: AbortSignal;
  /** While `work` runs, another program shares the terminal and handles Ctrl-C. */
  withoutInterrupts<T>(work: () => Promise<T>): Promise<T>;
};

export type CommandContext = ReturnType<typeof createContext>;

export type Answer = {
  readonly json: () => unknown;
  readonly text: (out: Output) => void;
};

type UseOptions = Pick<AppOptions, 'schema'> & {
  /** Whether the command changes something. The audit log then records who ran it, and how it ended. */
  readonly changes?: boolean;
  readonly handlesInterrupt?: boolean;
  /** Settings that an option of the command replaces. */
  readonly overrides?: Partial<Config>;
};

/** `end` receives the exit code of the command. `argv` is its line, for the audit log. */
export function createContext(deps: CliDeps, end: (code: ExitCode) => void, argv: readonly string[] = []) {
  return { ...deps, argv, config, log, withApp, action, answer };

  /** @throws UsageError that names every problem of the environment */
  function config(overrides?: Partial<Config>): Config {
    const parsed = parseConfig(deps.env);
    if ('ok' in parsed) return { ...parsed.ok, ...overrides };
    const { problems } = parsed;
    if (problems.length === 1) throw new UsageError(problems[0]!);
    throw new UsageError(`${problems.length} settings are wrong:\n${problems.map((text) => `  ${text}`).join('\n')}`);
  }

  function log(config: Config): Log {
    return createLog({
      level: config.logLevel,
      write: (line) => deps.io.err.write(line),
      readable: deps.io.err.isTerminal,
      secrets: secretsOf(config),
    });
  }

  /**
   * Opens the app, calls `use`, and always closes the app. Ctrl-C ends `use` at once, unless `handlesInterrupt`: then `use` watches
   * `signal` itself, finishes what is in flight and reports.
   */
  async function withApp<T>(options: UseOptions, use: (app: App) => Promise<T>): Promise<T> {
    const { schema, changes = false, handlesInterrupt = false, overrides } = options;
    const settings = config(overrides);
    const app = await openCommandApp(settings, { clock: deps.clock, log: log(settings), schema });
    const begunAt = schema === 'migrate' ? app.migratedIn.from : undefined;
    const work = changes ? (opened: App) => audited(opened, argv, () => use(opened), begunAt) : use;
    try {
      // `chandler migrate` records itself in the log.
      if (schema !== 'migrate') await noteMigration(app, argv);
      return await (handlesInterrupt ? work(app) : unlessAborted(work(app), deps.signal));
    } catch (error) {
      throw await explainLoss(error, settings, app);
    } finally {
      await app.close();
    }
  }

  /** A commander action that ends with an exit code. */
  function action<A extends unknown[]>(run: (...args: A) => Promise<ExitCode>): (...args: A) => Promise<void> {
    return async (...args) => {
      deps.signal.throwIfAborted();
      end(await run(...args));
    };
  }

  /** Lets a command open the app and print one answer: as text, or as JSON with `--json`. This adds the option `--json`. */
  function answer<A extends unknown[]>(
    command: Command,
    read: (app: App, ...args: A) => Promise<Answer>,
    options: UseOptions = { schema: 'require' },
  ): void {
    const run = (...args: A) =>
      withApp(options, async (app) => {
        const { json, text } = await read(app, ...args);
        // If the parent command has the option as well, commander gives it to the parent.
        if (command.optsWithGlobals<{ readonly json?: boolean }>().json) printJson(deps.io.out, json());
        else text(deps.io.out);
        return EXIT.done;
      });
    command.option('--json', 'print JSON').action(action(run));
  }
}

/** The reason in one sentence, when the database was lost or locked while the command ran. */
async function explainLoss(error: unknown, { databaseUrl, home }: Config, { database }: App): Promise<unknown> {
  if (error instanceof StoreError && !isLocked(error)) return error;
  const explained = await explainWithHolder(error, database);
  const isAlive = isLocked(error) || databaseUrl !== null || findEmbedded(home) !== null;
  if (explained === null || isAlive) return explained ?? error;
  return explainLostServer(home);
}
