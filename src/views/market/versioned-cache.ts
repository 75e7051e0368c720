/** What was read and may be answered again while nothing has changed. The same key under the same version is the same object. */

export type Kept<T> = {
  /** What `load` resolved to for this key, unless that was under another version. */
  get(key: string, version: string, load: () => Promise<T>): Promise<T>;
};

/** At most `most` in weight are kept, the last used ones. */
export function createKept<T>({
  most,
  weigh = () => 1,
  onGet = () => undefined,
}: {
  readonly most: number;
  readonly weigh?: (value: T) => number;
  /** Told of each question: was it there, and still true? */
  readonly onGet?: ((isHit: boolean) => void) | undefined;
}): Kept<T> {
  type Entry = { readonly version: string; readonly value: Promise<T>; weight: number };
  const entries = new Map<string, Entry>();
  let weight = 0;
  const remove = (key: string, entry: Entry) => {
    entries.delete(key);
    weight -= entry.weight;
  };
  const settle = (key: string, entry: Entry, value: T) => {
    if (entries.get(key) !== entry) return;
    entry.weight = weigh(value);
    weight += entry.weight;
    for (const [oldest, other] of entries) {
      // One that is too heavy by itself is kept all the same, until the next one comes: else it would be read anew each time.
      if (weight <= most || other === entry) break;
      remove(oldest, other);
    }
  };
  return {
    get: (key, version, load) => {
      const found = entries.get(key);
      onGet(found?.version === version);
      if (found !== undefined) {
        if (found.version === version) {
          // The last one used is the last one in the map.
          entries.delete(key);
          entries.set(key, found);
          return found.value;
        }
        remove(key, found);
      }
      const value = load();
      const entry: Entry = { version, value, weight: 0 };
      entries.set(key, entry);
      value.then(
        (loaded) => settle(key, entry, loaded),
        () => {
          if (entries.get(key) === entry) remove(key, entry);
        },
      );
      return value;
    },
  };
}
