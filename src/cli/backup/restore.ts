/** `chandler restore`: loads a backup into an empty database, and proves that it is the same warehouse. */
import type { Command } from 'commander';
import type { App } from '../../app.ts';
import { stopwatch } from '../../clock.ts';
import { unlessAborted } from '../../core/concurrency/unless-aborted.ts';
import { formatCounted, formatDuration } from '../../core/format.ts';
import { endCommandsOfBackup } from '../../store/backup/target.ts';
import { migrate } from '../../store/migration/migrate.ts';
import { hasAuditLog } from '../../store/work/audit.ts';
import { isProved, verifiedAsJson, verify, verifyAll } from '../commands/verify.ts';
import { compareWith, comparisonAsJson, isUntouched, verifyAgainst } from '../commands/verify-against.ts';
import { audited } from '../shell/audited.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT, type ExitCode } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';
import { printJson } from '../shell/json.ts';
import { attestationBeside, backupAt, digestBeside, hasFile } from './backup-file.ts';
import { type Loaded, load, settleLoaded } from './load.ts';

export function restoreCommand(program: Command, context: CommandContext): void {
  program
    .command('restore')
    .description(
      'load a backup into the empty database of DATABASE_URL (or CHANDLER_HOME), migrate it, and verify it; exits with 1 when anything differs',
    )
    .argument(
      '<file|dir>',
      'a backup, or a folder, whose newest backup is loaded; any archive of pg_dump --format=custom works',
    )
    .option('--json', 'print JSON')
    .action(
      context.action(async (target: string, { json = false }: { readonly json?: boolean }): Promise<ExitCode> => {
        const { env, io, signal } = context;
        const file = await backupAt(target);
        return context.withApp({ schema: 'leave', handlesInterrupt: true }, async (app) => {
          if (!json) io.out.write(`restoring ${file}\n`);
          const begunAt = app.clock.now();
          const startedAt = stopwatch();
          // When this fails, the database is as empty as before, and has no audit log.
          const loaded = await load(app, file, { env, err: io.err, signal });
          const { sql } = app.database;
          const early = (await hasAuditLog(sql)) ? [] : await migrate(app.database);
          await endCommandsOfBackup(sql, app.clock.now());
          const rest = async () => {
            const migrated = [...early, ...(await settleLoaded(app))];
            const restored = { file, ...loaded, migrated, tookMs: Math.round(stopwatch() - startedAt) };
            return (json ? proveAsJson : prove)(context, app, restored);
          };
          return unlessAborted(audited(app, context.argv, rest, begunAt), signal);
        });
      }),
    );
}

type Restored = Loaded & {
  readonly file: string;
  /** Migrations that the backup lacked. */
  readonly migrated: readonly string[];
  readonly tookMs: number;
};

async function prove(
  { io }: CommandContext,
  { database: { sql }, clock, config }: App,
  restored: Restored,
): Promise<ExitCode> {
  print(io.out, restored);
  io.out.write('\n');
  const codes = [await verify(io, sql, {}, clock.now())];
  const against = attestationBeside(restored.file);
  if (await hasFile(against)) {
    io.out.write('\n');
    codes.push(await verifyAgainst(io, sql, { against }, { keep: config.keep, now: clock.now() }));
  } else {
    io.out.write(
      `\nThere is no attestation beside the backup (${against}), so it is unknown whether the backup was changed.\n`,
    );
  }
  const isSame = codes.every((code) => code === EXIT.done);
  io.out.write(
    isSame ? AFTER : '\nThe backup is restored, but it differs from what the upstream answered: see above.\n',
  );
  return isSame ? EXIT.done : EXIT.failed;
}

async function proveAsJson(
  { io }: CommandContext,
  { database: { sql }, clock, config }: App,
  restored: Restored,
): Promise<ExitCode> {
  const verified = await verifyAll(io.err, sql, { filter: {}, now: clock.now(), onProof: () => undefined });
  const against = attestationBeside(restored.file);
  const comparison = (await hasFile(against))
    ? await compareWith(io.err, sql, { against }, { keep: config.keep, now: clock.now() })
    : null;
  const isSame = isProved(verified) && (comparison === null || isUntouched(comparison));
  const exitCode = isSame ? EXIT.done : EXIT.failed;
  const attestation = comparison === null ? null : { file: against, ...comparisonAsJson(comparison) };
  printJson(io.out, { ...restored, verify: verifiedAsJson(verified), attestation, exitCode });
  return exitCode;
}

const AFTER = `
The backup is restored. With a key, Chandler asks the account before its next request how many requests were sent since.
Stop every process that still uses the original: each would count only its own requests, and together they would exceed the quota.
A backup contains no logins: create those of analysts again.
`;

function print(
  out: Output,
  { file, postgres, sha256, tables, roles, removedUnused, migrated, tookMs }: Restored,
): void {
  if (sha256 !== null) out.write(`the file has the SHA-256 in ${digestBeside(file)}\n`);
  if (removedUnused) out.write('removed the warehouse that was there: it was empty\n');
  out.write(`loaded ${formatCounted(tables, 'table')} of Postgres ${postgres} in ${formatDuration(tookMs)}\n`);
  if (roles.length > 0) out.write(`made ${formatCounted(roles.length, 'role')} without a login: ${roles.join(', ')}\n`);
  if (migrated.length > 0) {
    out.write(
      `applied ${formatCounted(migrated.length, 'migration')} that the backup lacked: ${migrated.join(', ')}\n`,
    );
  }
}
