/** Marks files in the manifest of the lake as archived, and changes nothing else in it. */
import type { Destination } from '../destination/destination.ts';
import { refusedDamage } from '../export/existing-export.ts';
import type { ManifestElement, ManifestFile } from '../manifest/manifest.ts';
import { DamagedManifest, readManifest } from '../manifest/read-manifest.ts';
import { writeManifest } from '../manifest/write-manifest.ts';
import { ExportRefused } from '../refused.ts';

/**
 * Does not write the manifest when all files are marked already. Resolves when a manifest can be read that marks all of them.
 * @throws ExportRefused when no such manifest can be read, or when the manifest does not name the files
 */
export async function markArchived(destination: Destination, files: readonly ManifestFile[]): Promise<void> {
  if (files.length === 0) return;
  const paths = new Set(files.filter(({ isArchived }) => !isArchived).map(({ path }) => path));
  try {
    if (paths.size > 0) {
      const manifest = await readManifest(destination);
      if (manifest === null) throw new ExportRefused(`the manifest of ${destination.name} is missing`);
      await writeManifest(destination, manifest.head, marked(destination, manifest.elements, paths));
    }
    const path = await findUnmarked(destination, files);
    // Some storage shows the former state for a while, and a proxy may do so for longer.
    if (path !== null)
      throw new ExportRefused(
        `the manifest of ${destination.name} does not mark ${path} as archived yet; the next run checks again`,
      );
  } catch (error) {
    throw error instanceof DamagedManifest ? refusedDamage(destination, 'lake', error) : error;
  }
}

async function* marked(
  { name }: Destination,
  elements: AsyncIterable<ManifestElement>,
  paths: ReadonlySet<string>,
): AsyncGenerator<ManifestElement> {
  const missing = new Set(paths);
  for await (const one of elements) {
    const isMarked = one.list === 'files' && paths.has(one.element.path);
    if (isMarked) missing.delete(one.element.path);
    yield isMarked ? { list: 'files', element: { ...one.element, isArchived: true } } : one;
  }
  const [path] = missing;
  // Then the manifest was replaced since it was read first.
  if (path !== undefined) throw new ExportRefused(`the manifest of ${name} no longer names ${path}`);
}

/** The path of a file that the manifest does not mark as archived; null: it marks all of them. */
async function findUnmarked(destination: Destination, files: readonly ManifestFile[]): Promise<string | null> {
  const missing = new Map(files.map(({ path, sha256 }) => [path, sha256]));
  const manifest = await readManifest(destination);
  for await (const { list, element } of manifest?.elements ?? [])
    if (list === 'files' && element.isArchived && missing.get(element.path) === element.sha256)
      missing.delete(element.path);
  const [path] = missing.keys();
  return path ?? null;
}
