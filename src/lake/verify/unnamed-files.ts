/** Checks what is beside the files that a manifest names: the lists of a lake, and files that should not be there. */
import { type Destination, readText } from '../destination/destination.ts';
import { pathOfEntry } from '../manifest/journal.ts';
import type { ManifestFile, ManifestHead } from '../manifest/manifest.ts';
import { readManifestHead } from '../manifest/read-manifest.ts';
import { isFileList, listsOf } from '../sync/file-lists.ts';
import { isLakeFile } from '../sync/lake-file.ts';
import { type FileFinding, fileFinding } from './finding.ts';

type Named = {
  readonly head: ManifestHead;
  readonly files: readonly ManifestFile[];
  readonly retired: ReadonlySet<string>;
};

/** `others`: the files that the manifest does not name. */
export async function findUnnamedFiles(
  destination: Destination,
  { head, files, retired }: Named,
  others: ReadonlyMap<string, number>,
): Promise<FileFinding[]> {
  const isLake = head.kind === 'lake';
  const lists = isLake ? listsOf(files, destination) : new Map<string, string>();
  const findings: FileFinding[] = [];
  for (const [path, text] of lists) {
    if ((await readText(destination, path)) !== text)
      findings.push(fileFinding(path, 'does not list the files that the manifest names'));
  }
  for (const path of [...others.keys()].sort()) {
    // No list and no manifest has a file of a run that has not ended, so nobody reads it. A later run names it, or removes it.
    const isKnown = lists.has(path) || retired.has(path) || (isLake && isLakeFile(path));
    if (!isKnown) findings.push(fileFinding(path, 'is not named by the manifest'));
  }
  const isOfList = ({ path }: FileFinding) => path !== null && isLake && isFileList(path);
  // The lists are written shortly before the manifest.
  if (!findings.some(isOfList) || !(await isBeingWritten(destination, head))) return findings;
  return findings.filter((one) => !isOfList(one));
}

/** Whether a run has begun to write and has not ended, or has ended since the manifest was read. */
async function isBeingWritten(destination: Destination, { at }: ManifestHead): Promise<boolean> {
  if ((await readManifestHead(destination))?.at !== at) return true;
  for await (const { path } of destination.list()) if (pathOfEntry(path) !== null) return true;
  return false;
}
