/** What the two kinds of export do differently: one that is made by hand, and the lake, which has readers all the time. */
import type { Instant } from '../../clock.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import type { TableDataset } from '../dataset/dataset.ts';
import type { ExportKind, ManifestElement, ManifestFile } from '../manifest/manifest.ts';
import type { Before } from './before.ts';
import type { Narrowed } from './statements.ts';

export type ExportRules = {
  readonly kind: ExportKind;
  /** Of a lake. */
  readonly id?: string;
  /** Before anything is written. @throws ExportRefused */
  check(before: Before): void;
  /** Where a file of this version goes that is planned at `path`. */
  pathOf(path: string, version: string | null): string;
  /** Of a table that is written as a whole. Null: nothing tells but the bytes. */
  versionOfTable(tx: SqlOrTransaction, dataset: TableDataset, narrowed: Narrowed): Promise<string | null>;
  /** When all files are there, and the manifest, which is of `at`, does not name them yet. Resolves to what it says beside them. */
  beforeManifest(before: Before, files: readonly ManifestFile[], at: Instant): Promise<readonly ManifestElement[]>;
  /** When the manifest is there. Resolves to the paths of files that it removed. */
  afterManifest(before: Before, files: readonly ManifestFile[]): Promise<readonly string[]>;
};

/** The files are where they are planned, and the others go. */
export const BY_HAND: ExportRules = {
  kind: 'export',
  check: () => undefined,
  pathOf: (path) => path,
  versionOfTable: async () => null,
  beforeManifest: async () => [],
  afterManifest: async (before, files) => {
    const named = new Set(files.map(({ path }) => path));
    const removed = before.known.filter((path) => !named.has(path)).sort();
    await before.remove(removed);
    return removed;
  },
};
