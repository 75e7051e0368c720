/** `chandler backup`: writes the warehouse into a file, once or repeatedly. */
import type { Command } from 'commander';
import { createBackoff, WHOLE_BOUND } from '../../core/backoff.ts';
import { formatBytes, formatCounted, formatInstant, shellWord, toIso } from '../../core/format.ts';
import { HOUR, MINUTE } from '../../core/interval.ts';
import { parsePositiveInteger } from '../input/options.ts';
import { parseDuration } from '../input/time.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT, type ExitCode, UsageError } from '../shell/exit.ts';
import { explain } from '../shell/explain-error.ts';
import type { Output } from '../shell/io.ts';
import { printJson } from '../shell/json.ts';
import { attestationBeside, backupsIn, digestBeside, type Kept, keepNewest, namesFile } from './backup-file.ts';
import { type Dumped, dump } from './dump.ts';

type Options = {
  readonly attest: boolean;
  readonly keep?: number;
  readonly every?: number;
  readonly json?: boolean;
};

type Written = Dumped & Kept;

export function backupCommand(program: Command, context: CommandContext): void {
  program
    .command('backup')
    .description(
      'write the warehouse into a file with pg_dump, while the service keeps running; chandler restore loads it',
    )
    .argument(
      '<dir|file>',
      'a folder, which gets chandler-<instant>.dump; or a file that ends in .dump and does not exist',
    )
    .option('--no-attest', 'do not write an attestation of the same instant beside the backup')
    .option(
      '--keep <n>',
      'with a folder: once this backup is written, remove all except the newest n',
      parsePositiveInteger,
    )
    .option(
      '--every <time>',
      'with a folder: write a new backup regularly, like every 24h, until Ctrl-C or SIGTERM',
      parseEvery,
    )
    .option('--json', 'print JSON')
    .action(
      context.action(async (target: string, options: Options): Promise<ExitCode> => {
        const { every, keep, json } = options;
        for (const [name, value] of Object.entries({ '--keep': keep, '--every': every })) {
          if (value !== undefined && namesFile(target))
            throw new UsageError(`${name} needs a folder for many backups, and ${target} names one file`);
        }
        if (every !== undefined) return backUpRepeatedly(context, target, { ...options, every });
        const written = await backUp(context, target, options);
        if (json) printJson(context.io.out, asJson(written));
        else print(context.io.out, written);
        return written.notRemoved.length === 0 ? EXIT.done : EXIT.failed;
      }),
    );
}

function parseEvery(text: string): number {
  const ms = parseDuration(text);
  if (ms >= MINUTE) return ms;
  throw new UsageError('It must be a minute at least.');
}

function backUp(context: CommandContext, target: string, { attest, keep }: Options): Promise<Written> {
  const { env, signal, io } = context;
  return context.withApp({ schema: 'require', handlesInterrupt: true, changes: true }, async (app) => {
    const dumped = await dump(app, { target, attests: attest, env, err: io.err, signal });
    return {
      ...dumped,
      ...(keep === undefined ? { removed: [], notRemoved: [] } : await keepNewest(dumped.file, keep)),
    };
  });
}

const retryBackoff = createBackoff({ firstMs: MINUTE, mostMs: HOUR });

/**
 * The files in the folder decide when the next backup is due, so a restart makes no extra one. It logs failures and tries again. A wrong
 * setting ends the command, because waiting cannot fix it.
 */
async function backUpRepeatedly(
  context: CommandContext,
  target: string,
  options: Options & { readonly every: number },
): Promise<ExitCode> {
  const { clock, signal } = context;
  const log = context.log(context.config());
  for (let failures = 0; ; ) {
    const newest = (await backupsIn(target)).at(-1);
    const dueMs = newest === undefined ? 0 : newest.at + options.every - clock.now();
    // A file from the future was written before a clock was set back.
    const waitMs = failures > 0 ? retryBackoff(failures - 1, WHOLE_BOUND) : Math.min(dueMs, options.every);
    await clock.sleep(waitMs, signal).catch(() => undefined);
    if (signal.aborted) return EXIT.done;
    try {
      const { file, bytes, tables, attestation, removed, notRemoved } = await backUp(context, target, options);
      log.info({ file, bytes, tables, root: attestation?.root, removed: removed.length }, 'wrote a backup');
      // The backup is complete, so this is no reason to write another one.
      for (const reason of notRemoved) log.error(reason);
      failures = 0;
    } catch (error) {
      if (signal.aborted) return EXIT.done;
      const { message, exitCode } = explain(error);
      if (exitCode === EXIT.usage) throw error;
      log.error(
        { failures: failures + 1, nextTryInMs: retryBackoff(failures, WHOLE_BOUND) },
        `the backup failed: ${message}`,
      );
      failures++;
    }
  }
}

function asJson({ at, attestation, file, ...rest }: Written) {
  const { root = null, series = null } = attestation ?? {};
  return {
    file,
    at: toIso(at),
    ...rest,
    attestation: root === null ? null : { file: attestationBeside(file), root, series },
  };
}

function print(
  out: Output,
  { file, at, bytes, sha256, tables, attestation, leftOut, removed, notRemoved }: Written,
): void {
  out.write(`${file}: ${formatBytes(bytes)}, ${formatCounted(tables, 'table')}, as of ${formatInstant(at)}\n`);
  out.write(`${digestBeside(file)}: SHA-256 ${sha256}\n`);
  if (attestation !== null) {
    const { series, root } = attestation;
    out.write(`${attestationBeside(file)}: ${formatCounted(series, 'series')}, root ${root}\n`);
  }
  for (const old of removed) out.write(`removed ${old}\n`);
  for (const reason of notRemoved) out.write(`${reason}\n`);
  if (leftOut.length > 0) {
    out.write(
      `Not in the backup, as they are not Chandler's: the tables and views of the schema ${leftOut.join(', ')}.\n`,
    );
  }
  out.write(
    `Keep a copy on another machine. chandler restore ${shellWord(file)} brings it back into an empty database.\n`,
  );
}
