/** Records a command that changes something in the audit log: who ran it and when, and how it ended. */
import type { App } from '../../app.ts';
import type { Instant } from '../../clock.ts';
import { shellWord } from '../../core/format.ts';
import { beginAudit, endAudit, recordMigration } from '../../store/work/audit.ts';
import { EXIT } from './exit.ts';
import { explain } from './explain-error.ts';
import { requesterName } from './owner.ts';

/**
 * `argv`: the line that the user typed. `begunAt`: when the command began, if not now. A command that is killed has no end in the log.
 */
export async function audited<T>(
  app: App,
  argv: readonly string[],
  work: () => Promise<T>,
  begunAt?: Instant,
): Promise<T> {
  return auditedIfChanging(app, argv, async (onChange) => {
    await onChange(begunAt);
    return work();
  });
}

/** The same for a command that may change nothing: the entry begins with the first call of `onChange` by `work`. */
export async function auditedIfChanging<T>(
  app: App,
  argv: readonly string[],
  work: (onChange: (begunAt?: Instant) => Promise<void>) => Promise<T>,
): Promise<T> {
  const { clock, log } = app;
  const { sql } = app.database;
  let begun: Promise<number> | null = null;
  const onChange = async (begunAt = clock.now()) => {
    begun ??= beginAudit(sql, { at: begunAt, actor: requesterName(), command: commandLine(argv) });
    await begun;
  };
  const end = async (message: string | null) => {
    if (begun === null) return;
    // The work is done, or its own error matters more.
    await begun
      .then((id) => endAudit(sql, { id, endedAt: clock.now(), message }))
      .catch((error: unknown) => log.debug({ err: error }, 'could not record the end of the command'));
  };
  try {
    const result = await work(onChange);
    const isCode = typeof result === 'number' && result !== EXIT.done;
    await end(isCode ? `ended with exit code ${result}` : null);
    return result;
  } catch (error) {
    await end(explain(error).message);
    throw error;
  }
}

/** Records that opening the database has migrated it. */
export function noteMigration(app: App, argv: readonly string[]): Promise<void> {
  const { migrated, migratedIn: span } = app;
  const who = { actor: requesterName(), command: commandLine(argv) };
  return recordMigration(app.database.sql, { span, ...who, migrated });
}

/** The line as a user would type it in a shell. */
export function commandLine(argv: readonly string[]): string {
  return argv.map(shellWord).join(' ');
}
