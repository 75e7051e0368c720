/** Turns any error into one sentence and an exit code. */
import { ConfigurationError } from '../../ingest/outcome.ts';
import { StoreError } from '../../store/connection/store-error.ts';
import { DamagedAttestation } from '../../views/attestation/check-file.ts';
import { CommandError, EXIT, type ExitCode } from './exit.ts';

type Explanation = { readonly message: string; readonly exitCode: ExitCode; readonly isUnexpected: boolean };

/** `isUnexpected`: the error has no explanation, so its stack is worth printing. */
export function explain(error: unknown): Explanation {
  if (error instanceof CommandError) return { message: error.message, exitCode: error.exitCode, isUnexpected: false };
  if (error instanceof ConfigurationError) return { message: error.message, exitCode: EXIT.usage, isUnexpected: false };
  if (error instanceof StoreError) {
    const exitCode = error.isConfiguration ? EXIT.usage : EXIT.failed;
    return { message: error.message, exitCode, isUnexpected: false };
  }
  if (error instanceof DamagedAttestation)
    return { message: error.message, exitCode: EXIT.failed, isUnexpected: false };
  const known = explainSystemError(error);
  if (known !== undefined) return { message: known, exitCode: EXIT.failed, isUnexpected: false };
  const text = error instanceof Error ? error.message : String(error);
  const message = text.split('\n', 1)[0] || 'an error without a message';
  return { message, exitCode: EXIT.failed, isUnexpected: true };
}

type SystemError = Error & { code?: string; path?: string; address?: string; port?: number; syscall?: string };

/** What the operating system refused. It also searches the causes of the error. */
function explainSystemError(error: unknown): string | undefined {
  for (let e: unknown = error, depth = 0; e instanceof Error && depth < 8; e = e.cause, depth++) {
    const { code, path, address, port, syscall } = e as SystemError;
    const at = path === undefined ? '' : ` at ${path}`;
    switch (code) {
      case 'EADDRINUSE':
        return `port ${port} of ${address} is in use by another program; choose another port with --port, or for serve and service with CHANDLER_LISTEN or CHANDLER_OPERATIONS_LISTEN`;
      case 'EADDRNOTAVAIL':
        return `this machine does not have the address ${address}; choose another one, like 127.0.0.1, or 0.0.0.0 for all`;
      case 'ENOSPC':
      case 'EDQUOT':
        return `the disk is full${at}; free some space and run the command again; nothing stored is lost`;
      case 'EROFS':
        return `the disk is read-only${at}; choose a writable folder with CHANDLER_HOME`;
      case 'EACCES':
      case 'EPERM':
        if (syscall === 'listen') return `this user may not listen on port ${port}; choose a port above 1023`;
        return `this user may not ${syscall === 'open' ? 'read or write' : 'use'} ${path ?? 'a file it needs'}; correct its owner, or choose another folder with CHANDLER_HOME`;
      case 'EMFILE':
        return 'too many files are open; raise the limit with: ulimit -n 4096';
    }
  }
  return undefined;
}
