/** What every command is given: where to write, the clock, the configuration, and the parts it opens when it needs them. */
import { type App, type AppOptions, openApp } from '../../app.ts';
import type { Clock } from '../../clock.ts';
import { type Config, type Environment, parseConfig } from '../../config.ts';
import { createLog, type Log } from '../../log.ts';
import { explainDatabaseError, StoreError } from '../../store/connection/store-error.ts';
import { findEmbedded } from '../../store/embedded/embedded.ts';
import { explainLostServer } from '../../store/embedded/last-words.ts';
import { type ExitCode, UsageError } from './exit.ts';
import type { Io } from './io.ts';
import { secretsOf } from './secrets.ts';

export type CliDeps = {
  readonly io: Io;
  readonly clock: Clock;
  readonly env: Environment;
  /** Aborted by the first Ctrl-C or SIGTERM, with an `Interrupted` as its reason. */
  readonly signal: AbortSignal;
  /** While `work` runs, Ctrl-C is not ours: a program that shares the terminal deals with it. */
  withoutInterrupts<T>(work: () => Promise<T>): Promise<T>;
};

export type CommandContext = CliDeps & {
  /** @throws UsageError that names every problem of the environment. */
  config(overrides?: Partial<Config>): Config;
  log(config: Config): Log;
  /**
   * Opens the parts, gives them to `use`, and closes them in reverse order, whatever happens. Ctrl-C ends `use` at once,
   * unless it is `patient`: then it watches `signal` itself, finishes what is in flight and reports.
   */
  withApp<T>(options: UseOptions, use: (app: App) => Promise<T>): Promise<T>;
  /** A commander action that ends with an exit code. */
  action<A extends unknown[]>(run: (...args: A) => Promise<ExitCode>): (...args: A) => Promise<void>;
};

export type UseOptions = Pick<AppOptions, 'schema'> & {
  readonly patient?: boolean;
  /** Settings that an option of the command replaces. */
  readonly overrides?: Partial<Config>;
};

export function createContext(deps: CliDeps, end: (code: ExitCode) => void): CommandContext {
  const config: CommandContext['config'] = (overrides) => {
    const parsed = parseConfig(deps.env);
    if ('ok' in parsed) return { ...parsed.ok, ...overrides };
    const { problems } = parsed;
    if (problems.length === 1) throw new UsageError(problems[0]!);
    throw new UsageError(`${problems.length} settings are wrong:\n${problems.map((text) => `  ${text}`).join('\n')}`);
  };
  const log: CommandContext['log'] = (config) =>
    createLog({
      level: config.logLevel,
      write: (line) => deps.io.err.write(line),
      readable: deps.io.err.isTerminal,
      secrets: secretsOf(config),
    });
  return {
    ...deps,
    config,
    log,
    withApp: async ({ schema, patient = false, overrides }, use) => {
      const settings = config(overrides);
      const app = await openApp(settings, { clock: deps.clock, log: log(settings), schema });
      try {
        return await (patient ? use(app) : untilAborted(use(app), deps.signal));
      } catch (error) {
        throw explainLoss(error, settings, app);
      } finally {
        await app.close();
      }
    },
    action:
      (run) =>
      async (...args) => {
        deps.signal.throwIfAborted();
        end(await run(...args));
      },
  };
}

/** A database that was there when the command began and is no longer: in one sentence, too. */
function explainLoss(error: unknown, { databaseUrl, home }: Config, { database }: App): unknown {
  if (error instanceof StoreError) return error;
  const explained = explainDatabaseError(error, database.url);
  if (explained === null || databaseUrl !== null || findEmbedded(home) !== null) return explained ?? error;
  return explainLostServer(home);
}

/** The work's result, or the signal's reason as soon as it is aborted. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    work.finally(() => signal.removeEventListener('abort', stop)).then(resolve, reject);
  });
}
