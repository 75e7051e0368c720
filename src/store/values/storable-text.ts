/** What Postgres cannot hold, though JSON can, replaced: an upstream's texts may be anything. */

/** The character 0. */
export function storableText(text: string): string {
  return text.replaceAll('\0', '\ufffd');
}

/** As `json` and `jsonb` take it: without the character 0 and without halves of a surrogate pair. */
export function storableJson(value: unknown): string {
  return storableJsonText(JSON.stringify(value ?? null));
}

/**
 * An object as it comes back out of a jsonb: keys in its order (the shorter before the longer, then by their bytes), and what it
 * cannot hold replaced. Only of the object itself, not of objects in it.
 */
export function outOfJsonb<T extends object>(value: T): T {
  const stored = JSON.parse(storableJson(value)) as T;
  const entries = Object.entries(stored).map(([key, inside]) => ({ key, bytes: Buffer.from(key), inside }));
  entries.sort((a, b) => a.bytes.length - b.bytes.length || a.bytes.compare(b.bytes));
  return Object.fromEntries(entries.map(({ key, inside }) => [key, inside])) as T;
}

/**
 * A JSON text as Postgres takes it for a `json` whose texts can be read: the character 0 and halves of surrogate pairs replaced,
 * everything else as it stands.
 */
export function storableJsonText(text: string): string {
  if (!text.includes('\\u')) return text;
  // Pairs first, so that their halves are no halves; any other escape, so that a backslash that is escaped begins none.
  return text.replace(
    /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u([\da-fA-F]{4})|\\./gs,
    (whole: string, hex: string | undefined) => (/^(0000|d[89a-f]..)$/i.test(hex ?? '') ? '\\ufffd' : whole),
  );
}
