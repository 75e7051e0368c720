/** The contents of a pg_dump archive, read with pg_restore before anything is restored. */
import type { Environment } from '../../settings.ts';
import type { Applied } from '../../store/migration/migrate.ts';
import { CommandFailed } from '../shell/exit.ts';
import { type ArchiveHeader, readHeader } from './archive-header.ts';
import { type PostgresClient, runClient } from './postgres-client.ts';

export type Archive = {
  readonly file: string;
  /** Version of the server that was dumped: `18.4`. */
  readonly postgres: string;
  /** Version of the pg_dump that wrote it. */
  readonly dumpedBy: number;
  /** What pg_restore would do, one line each, in its order. */
  readonly entries: readonly string[];
};

type ReadOptions = { readonly env: Environment; readonly signal: AbortSignal };

/** @throws ArchiveTooNew when `client` is too old to read it, CommandFailed when it is no archive, or no archive of a warehouse */
export async function readArchive(client: PostgresClient, file: string, options: ReadOptions): Promise<Archive> {
  const list = await readWith(client, ['--list', file], options);
  const lines = list.split('\n').filter((line) => line !== '');
  const entries = lines.filter((line) => !line.startsWith(';'));
  if (!entries.some((line) => / TABLE ops migration /.test(line))) {
    throw new CommandFailed(`${file} holds no warehouse of Chandler (no table ops.migration); name another backup`);
  }
  const version = (label: string) => new RegExp(`${label}: (\\d+[\\d.]*)`).exec(list)?.[1] ?? '0';
  const postgres = version('Dumped from database version');
  return { file, postgres, dumpedBy: Number.parseInt(version('Dumped by pg_dump version'), 10), entries };
}

/** A pg_restore that cannot read the archive, because a newer pg_dump wrote it. */
export class ArchiveTooNew extends Error {
  override readonly name = 'ArchiveTooNew';
  readonly header: ArchiveHeader;

  constructor(file: string, header: ArchiveHeader) {
    super(`pg_dump ${header.dumpedBy} wrote ${file}`);
    this.header = header;
  }
}

/** @throws ArchiveTooNew, or CommandFailed that blames the file, because pg_restore reads nothing else here */
async function readWith(client: PostgresClient, args: readonly string[], options: ReadOptions): Promise<string> {
  return runClient(client, args, options).catch(async (error: unknown) => {
    if (!(error instanceof CommandFailed)) throw error;
    const file = args.at(-1)!;
    const header = /unsupported version .* in file header/.test(error.message) ? await readHeader(file) : null;
    if (header !== null && header.dumpedBy > client.major) throw new ArchiveTooNew(file, header);
    throw new CommandFailed(`${file} is not a backup, or not a complete one (${error.message}); name another one`);
  });
}

/** The messages of pg_restore about a file that ends too early, or that was changed. */
const DAMAGED =
  /end of file|corrupt|could not (read|uncompress|decompress|find block)|crc|checksum|invalid (block|distance|code|stored)/i;

export const isDamaged = (complaint: string) => DAMAGED.test(complaint);

/**
 * The entries to restore. It leaves out default privileges, which name the former owner (the migration grants them again), and the
 * `schemas` that exist already.
 */
export function entriesToRestore({ entries }: Archive, schemas: readonly string[]): string[] {
  const made = schemas.map((schema) => ` SCHEMA - ${schema} `);
  return entries.filter(
    (line) => !/^\d+; \d+ \d+ DEFAULT ACL /.test(line) && !made.some((schema) => line.includes(schema)),
  );
}

/** The migrations that were applied to the dumped database. */
export async function readMigrations(
  client: PostgresClient,
  { file }: Archive,
  options: ReadOptions,
): Promise<Applied[]> {
  const script = await readWith(
    client,
    ['--data-only', '--schema=ops', '--table=migration', '--file=-', file],
    options,
  );
  const [, columns = '', rows = ''] = /^COPY ops\.migration \((.*)\) FROM stdin;\n([\s\S]*?)^\\\.$/m.exec(script) ?? [];
  const names = columns.split(', ');
  const [when, name] = [names.indexOf('created_at'), names.indexOf('name')];
  return rows
    .split('\n')
    .filter((row) => row !== '')
    .map((row) => row.split('\t'))
    .map((values) => ({ when: Number(values[when]), name: values[name] ?? null }));
}

const GRANT = /^(?:GRANT .* TO|REVOKE .* FROM) (?:"((?:[^"]|"")+)"|([a-z_]\w*))(?: WITH GRANT OPTION)?;$/gm;

/** The roles that the archive grants rights to. It cannot be restored without them. `list` is a file with its entries. */
export async function readRoles(
  client: PostgresClient,
  { file }: Archive,
  list: string,
  options: ReadOptions,
): Promise<string[]> {
  const script = await readWith(
    client,
    ['--schema-only', `--use-list=${list}`, '--no-owner', '--file=-', file],
    options,
  );
  const names = [...script.matchAll(GRANT)].map(([, quoted, bare]) => quoted?.replaceAll('""', '"') ?? bare!);
  return [...new Set(names)].sort();
}
