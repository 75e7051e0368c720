/** Compares files of histories with the warehouse, if it still has the same rows: none was added or removed since. */
import { createHash } from 'node:crypto';
import { withSnapshot } from '../../store/backup/source.ts';
import type { Database } from '../../store/connection/connect.ts';
import type { Batch } from '../../store/copy/columns.ts';
import { openCopyOut } from '../../store/copy/copy-out.ts';
import type { HistoryDataset } from '../dataset/dataset.ts';
import { datasetNamed } from '../dataset/datasets.ts';
import type { Destination } from '../destination/destination.ts';
import { readHistoryVersion, tableStatement, typesOf } from '../export/statements.ts';
import { BATCH_ROWS, type FileColumn } from '../format/format.ts';
import { NotReadable } from '../format/not-readable.ts';
import { READERS } from '../format/open-format.ts';
import { openNdjson } from '../format/write-text.ts';
import { type ManifestFile, spanOfFile } from '../manifest/manifest.ts';
import { type FileFinding, fileFinding } from './finding.ts';
import type { Recounted } from './recount.ts';

type HistoryVerdict = 'equal' | 'changed' | 'differs';

/** For each file of a history: the warehouse has the same values, has changed since, or has other values that nothing explains. */
export async function compareHistories(
  { sql, url, watchdog }: Pick<Database, 'sql' | 'url' | 'watchdog'>,
  destination: Destination,
  { head, files, datasets }: Recounted,
): Promise<{ readonly counts: Readonly<Record<HistoryVerdict, number>>; readonly findings: readonly FileFinding[] }> {
  const counts = { equal: 0, changed: 0, differs: 0 };
  const findings: FileFinding[] = [];
  const read = await READERS[head.format]();
  await withSnapshot(sql, async (tx, snapshot) => {
    const copy = await openCopyOut({ url, snapshot, watchdog });
    try {
      for (const file of files) {
        const dataset = datasetNamed(file.dataset);
        const columns = datasets.get(file.dataset)?.columns ?? null;
        if (dataset.kind !== 'history' || columns === null) continue;
        const narrowed = { span: spanOfFile(file), coinIds: head.coins, finalOnly: head.finalOnly };
        if ((await readHistoryVersion(tx, dataset, narrowed)) !== file.version) {
          counts.changed++;
          continue;
        }
        const inFile = await hashFile(read({ destination, path: file.path, bytes: file.bytes, columns }), columns);
        if (inFile === null) continue;
        const stored = copy.read([tableStatement(dataset, narrowed)], typesOf(dataset), BATCH_ROWS);
        if ((await hashRows(stored, columns)) === inFile) counts.equal++;
        else {
          counts.differs++;
          findings.push(differs(file, dataset));
        }
      }
    } finally {
      await copy.close();
    }
  });
  return { counts, findings };
}

function differs({ path }: ManifestFile, { from }: HistoryDataset): FileFinding {
  return fileFinding(path, `has as many rows of the same times as ${from} in the warehouse, but other values`);
}

/** Null: the file cannot be read, which the recount has reported. */
async function hashFile(batches: AsyncGenerator<Batch>, columns: readonly FileColumn[]): Promise<string | null> {
  try {
    return await hashRows(batches, columns);
  } catch (error) {
    if (error instanceof NotReadable) return null;
    throw error;
  }
}

/** Hashes the rows as NDJSON, whatever the format of their file is. */
async function hashRows(batches: AsyncGenerator<Batch>, columns: readonly FileColumn[]): Promise<string> {
  const hash = createHash('sha256');
  const writer = openNdjson(async (bytes) => void hash.update(bytes), columns);
  for await (const batch of batches) await writer.write(batch);
  await writer.finish();
  return hash.digest('hex');
}
