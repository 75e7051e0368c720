/**
 * The rules of the lake, which always has readers. A file of another state has another name. A file that the manifest no longer names stays for a
 * day, for readers of the manifest before. The manifest lists these files, so a restart forgets none.
 */
import type { Instant } from '../../clock.ts';
import { DAY } from '../../core/interval.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import { announceManifest, type KnownLake } from '../../store/work/lake.ts';
import type { TableDataset } from '../dataset/dataset.ts';
import type { Destination } from '../destination/destination.ts';
import type { ExistingExport } from '../export/existing-export.ts';
import type { ExportRules } from '../export/rules.ts';
import { fromTable, type Narrowed } from '../export/statements.ts';
import type { ManifestElement, ManifestFile, RetiredFile } from '../manifest/manifest.ts';
import { ExportRefused } from '../refused.ts';
import { writeLists } from './file-lists.ts';
import { olderManifest, otherLake } from './identity.ts';
import { isLakeFile, lakePath } from './lake-file.ts';

/** How long a file stays after the manifest stopped naming it. */
const GRACE_MS = DAY;

export function lakeRules(
  sql: SqlOrTransaction,
  destination: Destination,
  known: KnownLake,
  now: () => Instant,
): ExportRules {
  let expired: readonly string[] = [];
  return {
    kind: 'lake',
    id: known.id,
    check: (before) => {
      // Checked again, because the next manifest continues from this one.
      const problem = otherLake(destination, before.head, known);
      if (problem !== null) throw new ExportRefused(problem);
      checkNewest(destination, before, known.at);
    },
    pathOf: (path, version) => {
      if (version === null) throw new Error(`${path} has no version`);
      return lakePath(path, version);
    },
    versionOfTable: readTableVersion,
    beforeManifest: async (before, files, at) => {
      const retired = retiredOf(before, files, now());
      const isExpired = ({ since }: RetiredFile) => now() - Date.parse(since) >= GRACE_MS;
      expired = retired.filter(isExpired).map(({ path }) => path);
      await writeLists(destination, files, before.sizes.keys());
      await announceManifest(sql, known.id, at);
      return retired.filter((one) => !isExpired(one)).map((element): ManifestElement => ({ list: 'retired', element }));
    },
    afterManifest: async (before) => {
      await before.remove(expired);
      return expired;
    },
  };
}

/**
 * An older manifest may be that of a copy. But if there are files that only a newer manifest can name, the storage still shows an old one, or it
 * was restored alone. Then the run would remove these files, and they may be the last copy.
 */
function checkNewest(destination: Destination, before: ExistingExport, at: Instant | null): void {
  if (before.head === null || at === null || Date.parse(before.head.at) >= at) return;
  const told = new Set([...before.files.keys(), ...before.known, ...before.retired.map(({ path }) => path)]);
  const path = [...before.sizes.keys()].find((one) => isLakeFile(one) && !told.has(one));
  if (path === undefined) return;
  const older = olderManifest(destination, before.head, at);
  throw new ExportRefused(
    `${older}, and only a newer manifest can name ${path}; restore the newer manifest, or wait until the storage shows it; to continue without the files that it names: chandler lake accept`,
  );
}

/** Includes files that no manifest ever named: those of a killed run. */
function retiredOf(before: ExistingExport, files: readonly ManifestFile[], now: Instant): RetiredFile[] {
  const named = new Set(files.map(({ path }) => path));
  const since = new Map(before.retired.map((one) => [one.path, one.since]));
  return [...before.sizes.keys()]
    .filter((path) => isLakeFile(path) && !named.has(path))
    .sort()
    .map((path) => ({ path, since: since.get(path) ?? new Date(now).toISOString() }));
}

/** Hashes all rows, in any order. */
async function readTableVersion(tx: SqlOrTransaction, dataset: TableDataset, narrowed: Narrowed): Promise<string> {
  const columns = dataset.columns.map(({ name, type, sql }) => ({ form: `${name} ${type}`, sql }));
  const [row] = await tx.unsafe<{ version: string }[]>(
    `select encode(sha256(convert_to(row(count(*), sum(hashtextextended(t::text, 0)), sum(hashtextextended(t::text, 1)))::text, 'UTF8')), 'hex') as version
     from (select ${columns.map(({ sql }, i) => `${sql} as c${i}`).join(', ')} ${fromTable(dataset, narrowed)}) t`,
  );
  return `${row!.version.slice(0, 32)}`;
}
