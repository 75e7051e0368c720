/** One backup: pg_dump and the attestation read the same snapshot, while the service keeps writing. */
import { stat } from 'node:fs/promises';
import type { App } from '../../app.ts';
import { writeAttestation } from '../../background/attestation/attestation-file.ts';
import type { Instant } from '../../clock.ts';
import type { Environment } from '../../settings.ts';
import {
  BACKED_UP,
  readOtherSchemas,
  readServerVersion,
  readTableSizes,
  type TableSize,
  withSnapshot,
} from '../../store/backup/source.ts';
import type { Attested } from '../../views/attestation/attestation.ts';
import { startBar } from '../output/bar.ts';
import type { Output } from '../shell/io.ts';
import { attestationBeside, placeFor, writeBackup } from './backup-file.ts';
import { findClients, fittingClient, missingClient, runClient } from './postgres-client.ts';

type DumpOptions = {
  /** A folder, or a file that does not exist. */
  readonly target: string;
  /** Also write an attestation of the same instant. */
  readonly attests: boolean;
  readonly env: Environment;
  readonly err: Output;
  readonly signal: AbortSignal;
};

export type Dumped = {
  readonly file: string;
  readonly at: Instant;
  readonly bytes: number;
  /** Of the file. */
  readonly sha256: string;
  readonly tables: number;
  /** Version of the server. */
  readonly postgres: string;
  readonly attestation: Attested | null;
  /** Schemas in the same database that do not belong to Chandler. */
  readonly leftOut: readonly string[];
};

/** How long pg_dump waits for a statement that changes a table, like a migration. */
const LOCK_TIMEOUT = '300s';

/** @throws UsageError when there is no suitable pg_dump or no place for the file, CommandFailed with the error of pg_dump */
export async function dump({ clock, database: { sql, url }, config }: App, options: DumpOptions): Promise<Dumped> {
  const { env, err } = options;
  const server = await readServerVersion(sql);
  const clients = await findClients('pg_dump', env);
  const client = fittingClient(clients, server.major);
  const whose = config.databaseUrl === null ? 'the embedded server' : 'the server';
  if (client === undefined) {
    throw missingClient('pg_dump', clients, server.major, `${whose} is Postgres ${server.version}`);
  }
  const at = clock.now();
  const file = await placeFor(options.target, at);
  // When one of them fails, the other one is aborted, because its result would be useless.
  const failed = new AbortController();
  const signal = AbortSignal.any([options.signal, failed.signal]);
  const written = await writeBackup(file, signal, (part) =>
    withSnapshot(sql, async (tx, snapshot) => {
      const leftOut = await readOtherSchemas(tx);
      const sizes = await readTableSizes(tx);
      const onFailure = (error: unknown) => {
        failed.abort(error);
        throw error;
      };
      const progress = await startProgress(err, sizes);
      const dumping = runClient(client, dumpArguments(part, snapshot), {
        url,
        env,
        signal,
        onProgress: progress.read,
      }).catch(onFailure);
      const attesting = options.attests
        ? writeAttestation(tx, attestationBeside(part), { at, key: null, signal, waitsForReads: true }).catch(onFailure)
        : null;
      try {
        const [, attestation] = await Promise.all([dumping, attesting]);
        return {
          at,
          tables: sizes.length,
          postgres: server.version,
          attestation,
          leftOut,
          bytes: (await stat(part)).size,
        };
      } finally {
        // The transaction must not end while one of them still reads.
        await Promise.allSettled([dumping, attesting]);
        progress.stop();
      }
    }),
  );
  return { file, ...written };
}

function dumpArguments(part: string, snapshot: string): string[] {
  return [
    '--format=custom',
    `--file=${part}`,
    `--snapshot=${snapshot}`,
    `--lock-wait-timeout=${LOCK_TIMEOUT}`,
    ...BACKED_UP.map((schema) => `--schema=${schema}`),
    '--no-password',
    '--verbose',
  ];
}

/** A progress bar in megabytes. It counts a table when the next one begins. */
async function startProgress(err: Output, sizes: readonly TableSize[]) {
  const megabytes = new Map(sizes.map(({ name, bytes }) => [name, bytes / 2 ** 20]));
  const total = [...megabytes.values()].reduce((sum, size) => sum + size, 0);
  const bar = await startBar(err, 'MB', async () => Math.ceil(total));
  let [dumped, shown] = [0, 0];
  return {
    read: (line: string) => {
      const table = /dumping contents of table "(.*)"$/.exec(line)?.[1];
      if (table === undefined) return;
      bar.add(Math.floor(dumped) - shown);
      shown = Math.floor(dumped);
      dumped += megabytes.get(table.replaceAll('"', '')) ?? 0;
    },
    stop: () => bar.stop(),
  };
}
