/** How a command ends: the exit codes, and the errors that carry one. Only `main.ts` exits. */

export const EXIT = {
  done: 0,
  /** Something was refused or failed. */
  failed: 1,
  /** Wrong usage or configuration: nothing was begun. */
  usage: 2,
  /** Stopped early with work left: run it again, nothing is lost. */
  stoppedEarly: 75,
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Wrong usage or configuration; the message is one sentence that names what was given and what would be right. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly exitCode = EXIT.usage;
}

/** The command could not do what it was asked; the message says why and what would help. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed';
  readonly exitCode = EXIT.failed;
}

/** There is work left that cannot be done now (the quota is spent, say); the message says until when. */
export class StoppedEarly extends Error {
  override readonly name = 'StoppedEarly';
  readonly exitCode = EXIT.stoppedEarly;
}

/** Ctrl-C or SIGTERM; also the reason that the abort signal of a command carries. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
  readonly exitCode = EXIT.interrupted;
}

/** The code an error stands for, or undefined when it is none of the above. */
export function exitCodeOf(error: unknown): ExitCode | undefined {
  const known = [UsageError, CommandFailed, StoppedEarly, Interrupted].some((kind) => error instanceof kind);
  return known ? (error as CommandFailed).exitCode : undefined;
}
