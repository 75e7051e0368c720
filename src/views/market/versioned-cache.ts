/**
 * Keeps data that several answers are made of: whole lists, documents and search indexes. To read and index them takes far longer than
 * to read a single record. Single records need no cache here: the service caches the bytes of its responses.
 */
import { LRUCache } from 'lru-cache';
import type { DataVersions } from './data-versions.ts';

/** What `load` resolved to for this key, as long as the versions of the topics stay; the same object each time. */
export type VersionedCache<T> = (topics: readonly string[], key: string, load: () => Promise<T>) => Promise<T>;

/** Keeps the entries used last, at most `maxSize` in the unit of `sizeOf`. Calls for an entry that is being loaded share the load. */
export function createVersionedCache<T extends object>({
  versions,
  view,
  maxSize,
  sizeOf = () => 1,
}: {
  readonly versions: DataVersions;
  /** Lookups are counted under this name; default: not counted. */
  readonly view?: string;
  readonly maxSize: number;
  readonly sizeOf?: (value: T) => number;
}): VersionedCache<T> {
  type Entry = { readonly version: string; readonly value: Promise<T> };
  const entries = new LRUCache<string, Entry>({ maxSize });
  return async (topics, key, load) => {
    const version = await versions.of(topics);
    const found = entries.get(key);
    const isHit = found?.version === version;
    if (view !== undefined) versions.onCacheLookup(view, isHit);
    if (isHit) return found.value;
    const entry: Entry = { version, value: versions.readUnder(topics, load) };
    entries.set(key, entry, { size: 1 });
    try {
      const value = await entry.value;
      // A value that is too large by itself stays until the next one comes: else it would be read each time.
      const size = Math.min(maxSize, Math.max(1, Math.ceil(sizeOf(value))));
      if (entries.peek(key) === entry) entries.set(key, entry, { size });
      return value;
    } catch (error) {
      if (entries.peek(key) === entry) entries.delete(key);
      throw error;
    }
  };
}
