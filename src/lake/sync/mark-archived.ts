/** Marks files in the manifest of the lake as archived, and changes nothing else of it. */
import type { Destination } from '../destination/destination.ts';
import type { ManifestElement, ManifestFile } from '../manifest/manifest.ts';
import { readManifest } from '../manifest/read-manifest.ts';
import { writeManifest } from '../manifest/write-manifest.ts';

/** When all of them are marked already, nothing is written. @throws DamagedManifest; then the manifest is as it was */
export async function markArchived(destination: Destination, files: readonly ManifestFile[]): Promise<void> {
  const paths = new Set(files.filter(({ isArchived }) => !isArchived).map(({ path }) => path));
  if (paths.size === 0) return;
  const manifest = await readManifest(destination);
  if (manifest === null) throw new Error(`${destination.name} has no manifest`);
  await writeManifest(destination, manifest.head, marked(manifest.elements, paths));
}

async function* marked(
  elements: AsyncIterable<ManifestElement>,
  paths: ReadonlySet<string>,
): AsyncGenerator<ManifestElement> {
  for await (const one of elements) {
    const isMarked = one.list === 'files' && paths.has(one.element.path);
    yield isMarked ? { list: 'files', element: { ...one.element, isArchived: true } } : one;
  }
}
