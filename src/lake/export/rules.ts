/** The differences between the two kinds of export: one that is made by hand, and the lake, which always has readers. */
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import type { TableDataset } from '../dataset/dataset.ts';
import type { ExportKind, ManifestElement, ManifestFile } from '../manifest/manifest.ts';
import type { ExistingExport } from './existing-export.ts';
import type { Narrowed } from './statements.ts';

export type ExportRules = {
  readonly kind: ExportKind;
  /** The id of a lake. */
  readonly id?: string;
  /** Called before anything is written. @throws ExportRefused */
  check(before: ExistingExport): void;
  /** The path of a file of this version that is planned at `path`. */
  pathOf(path: string, version: string | null): string;
  /** The version of a table that is written as a whole. Null: only the bytes show whether it has changed. */
  versionOfTable(tx: SqlOrTransaction, dataset: TableDataset, narrowed: Narrowed): Promise<string | null>;
  /** Called when all files are written and the manifest, which is of `at`, does not name them yet. Resolves to further elements of the manifest. */
  beforeManifest(
    before: ExistingExport,
    files: readonly ManifestFile[],
    at: Instant,
  ): Promise<readonly ManifestElement[]>;
  /** Called when the manifest is written. Resolves to the paths of the files that it removed. */
  afterManifest(before: ExistingExport, files: readonly ManifestFile[]): Promise<readonly string[]>;
};

/** The files are written to their planned paths, and the others are removed. */
export const BY_HAND: ExportRules = {
  kind: 'export',
  check: () => undefined,
  pathOf: (path) => path,
  versionOfTable: async () => null,
  beforeManifest: async (before, files) => {
    // The next manifest no longer names them. Without a note, they would be somebody else's files after a kill.
    await before.noteRemoval(unnamed(before, files));
    return [];
  },
  afterManifest: async (before, files) => {
    const removed = unnamed(before, files);
    await before.remove(removed);
    return removed;
  },
};

/** The files of earlier runs that do not belong to the export any more. */
function unnamed({ known }: ExistingExport, files: readonly ManifestFile[]): string[] {
  const named = new Set(files.map(({ path }) => path));
  return known.filter((path) => !named.has(path)).sort();
}
