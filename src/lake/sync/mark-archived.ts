/** Marks files in the manifest of the lake as archived, and changes nothing else of it. */
import type { Destination } from '../destination/destination.ts';
import { refusedDamage } from '../export/before.ts';
import type { ManifestElement, ManifestFile } from '../manifest/manifest.ts';
import { DamagedManifest, readManifest } from '../manifest/read-manifest.ts';
import { writeManifest } from '../manifest/write-manifest.ts';
import { ExportRefused } from '../refused.ts';

/**
 * When all of them are marked already, nothing is written. Resolves when the manifest can be read back, and marks them.
 * @throws ExportRefused when that is not so, or when the manifest does not name them
 */
export async function markArchived(destination: Destination, files: readonly ManifestFile[]): Promise<void> {
  const paths = new Set(files.filter(({ isArchived }) => !isArchived).map(({ path }) => path));
  if (paths.size === 0) return;
  try {
    const manifest = await readManifest(destination);
    if (manifest === null) throw new ExportRefused(`${destination.name} has no manifest any more`);
    const root = await writeManifest(destination, manifest.head, marked(destination, manifest.elements, paths));
    // Some storage shows the former state for a while, and a proxy may for longer.
    if ((await readRoot(destination)) !== root)
      throw new ExportRefused(`${destination.name} does not show yet that it is archived; the next run looks again`);
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
  // Then the one that was read first is not the one that is there now.
  if (path !== undefined) throw new ExportRefused(`the manifest of ${name} does not name ${path} any more`);
}

/** Null: there is no manifest. */
async function readRoot(destination: Destination): Promise<string | null> {
  const manifest = await readManifest(destination);
  if (manifest === null) return null;
  for (;;) {
    const read = await manifest.elements.next();
    if (read.done) return read.value.root;
  }
}
