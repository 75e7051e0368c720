/** Errors as one sentence for whoever typed the command; stack traces only where the log level asks for them. */
import { ConfigurationError } from '../../ingest/outcome.ts';
import { StoreError } from '../../store/connection/store-error.ts';
import { EXIT, type ExitCode, exitCodeOf } from './exit.ts';

export type Explanation = { readonly message: string; readonly exitCode: ExitCode; readonly isOurs: boolean };

/** `isOurs`: nobody foresaw this error, so its stack is worth having. */
export function explain(error: unknown): Explanation {
  const exitCode = exitCodeOf(error);
  if (exitCode !== undefined) return { message: (error as Error).message, exitCode, isOurs: false };
  // The key or the address is wrong, as upstream says.
  if (error instanceof ConfigurationError) return { message: error.message, exitCode: EXIT.usage, isOurs: false };
  if (error instanceof StoreError) {
    const exitCode = error.isConfiguration ? EXIT.usage : EXIT.failed;
    return { message: error.message, exitCode, isOurs: false };
  }
  const known = explainSystemError(error);
  if (known !== undefined) return { message: known, exitCode: EXIT.failed, isOurs: false };
  const text = error instanceof Error ? error.message : String(error);
  const message = text.split('\n', 1)[0] || 'something failed without saying what';
  return { message, exitCode: EXIT.failed, isOurs: true };
}

type SystemError = Error & { code?: string; path?: string; address?: string; port?: number; syscall?: string };

/** What the operating system refused; looks through the causes of an error as well. */
function explainSystemError(error: unknown): string | undefined {
  for (let e: unknown = error, depth = 0; e instanceof Error && depth < 8; e = e.cause, depth++) {
    const { code, path, address, port, syscall } = e as SystemError;
    const at = path === undefined ? '' : ` at ${path}`;
    switch (code) {
      case 'EADDRINUSE':
        return `port ${port} of ${address} is taken by another program; choose another with --port, or for serve and service with CHANDLER_LISTEN`;
      case 'EADDRNOTAVAIL':
        return `this machine has no address ${address}; choose one it has, like 127.0.0.1, or 0.0.0.0 for all`;
      case 'ENOSPC':
        return `the disk is full${at}; make room and run the command again: nothing stored is lost`;
      case 'EROFS':
        return `the disk is read-only${at}; choose a folder that can be written with CHANDLER_HOME`;
      case 'EACCES':
      case 'EPERM':
        if (syscall === 'listen') return `port ${port} needs more rights than this user has; choose one above 1023`;
        return `this user may not ${syscall === 'open' ? 'read or write' : 'use'} ${path ?? 'a file it needs'}; correct its owner, or choose another folder with CHANDLER_HOME`;
      case 'EMFILE':
        return 'too many files are open; raise the limit with: ulimit -n 4096';
    }
  }
  return undefined;
}
