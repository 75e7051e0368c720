/** The writers and readers of all formats. */
import type { Format, OpenWriter, ReadRows } from './format.ts';

/** Each module is loaded only when it is needed. */
export const WRITERS: Readonly<Record<Format, () => Promise<OpenWriter>>> = {
  parquet: async () => (await import('./write-parquet.ts')).openParquet,
  csv: async () => (await import('./write-text.ts')).openCsv,
  ndjson: async () => (await import('./write-text.ts')).openNdjson,
  arrow: async () => (await import('./write-arrow.ts')).openArrow,
};

export const READERS: Readonly<Record<Format, () => Promise<ReadRows>>> = {
  parquet: async () => (await import('./read-parquet.ts')).readParquet,
  csv: async () => (await import('./read-text.ts')).readCsv,
  ndjson: async () => (await import('./read-text.ts')).readNdjson,
  arrow: async () => (await import('./read-arrow.ts')).readArrow,
};
