/** The exit codes, and the errors that carry one. Only `main.ts` ends the process. */

export const EXIT = {
  done: 0,
  /** Something was refused or failed. */
  failed: 1,
  /** Wrong usage or configuration: nothing was done. */
  usage: 2,
  /** Stopped early with work left. Run the command again: nothing is lost. */
  stoppedEarly: 75,
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** An error that ends the command with its own exit code. */
export abstract class CommandError extends Error {
  abstract readonly exitCode: ExitCode;
}

/** Wrong usage or configuration. The message names what was given, and what is allowed. */
export class UsageError extends CommandError {
  override readonly name = 'UsageError';
  /** If a parser of an option throws it, commander reports it with the name of the option and the given value. */
  readonly code = 'commander.invalidArgument';
  readonly exitCode = EXIT.usage;
}

/** The command could not do its work. The message says why, and what would help. */
export class CommandFailed extends CommandError {
  override readonly name = 'CommandFailed';
  readonly exitCode = EXIT.failed;
}

/** Work is left that cannot be done now, for example because the quota is used up. The message says until when. */
export class StoppedEarly extends CommandError {
  override readonly name = 'StoppedEarly';
  readonly exitCode = EXIT.stoppedEarly;
}

/** Ctrl-C or SIGTERM; also the reason of the abort signal of a command. */
export class Interrupted extends CommandError {
  override readonly name = 'Interrupted';
  readonly exitCode = EXIT.interrupted;
}
