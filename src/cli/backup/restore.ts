/** `chandler restore`: brings a backup back into an empty database, and proves that it is the same warehouse. */
import type { Command } from 'commander';
import type { App } from '../../app.ts';
import { stopwatch } from '../../clock.ts';
import { unlessAborted } from '../../core/concurrency/unless-aborted.ts';
import { formatCounted, formatDuration } from '../../core/format.ts';
import { verify } from '../commands/verify.ts';
import { verifyAgainst } from '../commands/verify-against.ts';
import { audited } from '../shell/audited.ts';
import type { CommandContext } from '../shell/context.ts';
import { EXIT, type ExitCode } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';
import { attestationBeside, backupAt, hasFile } from './backup-file.ts';
import { type Loaded, load } from './load.ts';

export function restoreCommand(program: Command, context: CommandContext): void {
  program
    .command('restore')
    .description(
      'load a backup into the empty database of DATABASE_URL (or CHANDLER_HOME), migrate it, and verify it; exits with 1 when anything differs',
    )
    .argument(
      '<file|dir>',
      'a backup, or a folder whose newest backup is meant; any archive of pg_dump --format=custom will do',
    )
    .action(
      context.action(async (target: string): Promise<ExitCode> => {
        const { env, io, signal } = context;
        const file = await backupAt(target);
        return context.withApp({ schema: 'leave', handlesInterrupt: true }, async (app) => {
          io.out.write(`restoring ${file}\n`);
          const startedAt = stopwatch();
          const loaded = await load(app, file, { env, err: io.err, signal });
          print(io.out, loaded, stopwatch() - startedAt);
          // Now there is an audit log to write to: that of the backup.
          return unlessAborted(
            audited(app, context.argv, () => prove(context, app, file)),
            signal,
          );
        });
      }),
    );
}

async function prove(
  { io }: CommandContext,
  { database: { sql }, clock, config }: App,
  file: string,
): Promise<ExitCode> {
  io.out.write('\n');
  const codes = [await verify(io, sql, {}, clock.now())];
  const against = attestationBeside(file);
  if (await hasFile(against)) {
    io.out.write('\n');
    codes.push(await verifyAgainst(io, sql, { against }, { keep: config.keep, now: clock.now() }));
  } else {
    io.out.write(`\nNo attestation lies beside the backup (${against}): nothing tells whether it was changed.\n`);
  }
  const isSame = codes.every((code) => code === EXIT.done);
  io.out.write(isSame ? AFTER : '\nThe backup is restored, and it differs from what was answered: see above.\n');
  return isSame ? EXIT.done : EXIT.failed;
}

const AFTER = `
The backup is restored. With a key, Chandler asks the account before its next request how many were sent since.
Stop what still asks the upstream with the original: each would count for itself, and together they would overrun the quota.
Logins are not in a backup: make those of analysts again.
`;

function print(out: Output, { postgres, tables, roles, migrated }: Loaded, ms: number): void {
  out.write(`loaded ${formatCounted(tables, 'table')} of Postgres ${postgres} in ${formatDuration(ms)}\n`);
  if (roles.length > 0) out.write(`made ${formatCounted(roles.length, 'role')} without a login: ${roles.join(', ')}\n`);
  if (migrated.length > 0) {
    out.write(
      `applied ${formatCounted(migrated.length, 'migration')} that the backup lacked: ${migrated.join(', ')}\n`,
    );
  }
}
