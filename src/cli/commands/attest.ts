/** `chandler attest`: writes digests of everything that is stored into a small file, to be kept elsewhere. */
import type { Command } from 'commander';
import { checkReplaceable, readPrivateKey, writeAttestation } from '../../background/attestation/attestation-file.ts';
import { fileProblem } from '../../core/as-error.ts';
import { unlessAborted } from '../../core/concurrency/unless-aborted.ts';
import { formatBytes, formatCounted, toIso } from '../../core/format.ts';
import { sizeOf } from '../../views/operations/verify.ts';
import { startBar } from '../output/bar.ts';
import type { CommandContext } from '../shell/context.ts';
import { CommandFailed, EXIT, UsageError } from '../shell/exit.ts';
import { printJson } from '../shell/json.ts';

type Options = { readonly out?: string; readonly sign?: string; readonly json?: boolean };

export function attestCommand(program: Command, context: CommandContext): void {
  program
    .command('attest')
    .description('write an attestation: digests of all that is stored; chandler verify --against compares with it')
    .option('--out <file>', 'where to write it (default: attestation-<instant>.jsonl)')
    .option('--sign <key>', 'sign it with the Ed25519 key of this PEM file')
    .option('--json', 'print JSON')
    .action(
      context.action(async ({ out, sign, json }: Options) => {
        const key = sign === undefined ? null : await readPrivateKey(sign, '--sign');
        if (out !== undefined) await checkReplaceable(out, '--out', { isSigned: key !== null });
        // An interrupted command must have removed its incomplete file before it ends.
        const use = { schema: 'require', handlesInterrupt: true } as const;
        return context.withApp(use, async ({ database: { sql }, clock }) => {
          const at = clock.now();
          const path = out ?? attestationName(at);
          const { signal } = context;
          const size = async () => (await unlessAborted(sizeOf(sql, {}), signal)).series;
          const bar = await startBar(context.io.err, 'series', size);
          const attested = await writeAttestation(sql, path, { at, key, onSeries: () => bar.add(1), signal })
            .finally(() => bar.stop())
            .catch((error: unknown) => {
              const { syscall, code } = error as NodeJS.ErrnoException;
              if (code === 'ENOSPC' || code === 'EDQUOT')
                throw new CommandFailed(`--out: the disk of ${path} is full; free some space, or name another file`);
              if (syscall !== 'open' && syscall !== 'rename') throw error;
              throw new UsageError(
                `--out: ${path} cannot be written (${fileProblem(error)}); name a file in a folder that exists, and that you may write to`,
              );
            });
          const { root, series, signature = null } = attested;
          if (json) printJson(context.io.out, { file: path, at: toIso(at), root, series, signature });
          else {
            const written = `${formatCounted(series, 'series')}, ${formatBytes(attested.bytes)}`;
            const how = signature === null ? 'not signed' : 'signed';
            context.io.out.write(
              `${path}: ${written}, ${how}\nroot ${root}\nKeep a copy where nobody who can write this database can change it.\n`,
            );
          }
          return EXIT.done;
        });
      }),
    );
}

/** `attestation-20240131T120000Z.jsonl`. */
function attestationName(at: number): string {
  return `attestation-${toIso(at)!.replace(/\.\d+/, '').replace(/[-:]/g, '')}.jsonl`;
}
