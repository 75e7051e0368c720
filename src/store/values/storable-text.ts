/** Replaces characters that JSON can contain but Postgres cannot store: the texts of an upstream may contain anything. */

/** Replaces the character U+0000. */
export function storableText(text: string): string {
  return text.replaceAll('\0', '\ufffd');
}

/** Writes JSON that `json` and `jsonb` accept: the character U+0000 and halves of surrogate pairs are replaced. */
export function storableJson(value: unknown): string {
  return storableJsonText(JSON.stringify(value ?? null));
}

/**
 * The object as a jsonb column returns it: its keys in the order of jsonb (shorter keys first, then by their bytes), and characters
 * that jsonb cannot store replaced. Only the keys of the object itself are sorted, not those of nested objects.
 */
export function fromJsonb<T extends object>(value: T): T {
  const stored = JSON.parse(storableJson(value)) as T;
  const entries = Object.entries(stored).map(([key, inside]) => ({ key, bytes: Buffer.from(key), inside }));
  entries.sort((a, b) => a.bytes.length - b.bytes.length || a.bytes.compare(b.bytes));
  return Object.fromEntries(entries.map(({ key, inside }) => [key, inside])) as T;
}

/**
 * A JSON text for a `json` column whose strings Postgres can also read: the character U+0000 and halves of surrogate pairs are
 * replaced, everything else is unchanged.
 */
export function storableJsonText(text: string): string {
  if (!text.includes('\\u')) return text;
  // Whole pairs match first, so that their halves stay. Any other escape matches too, so that an escaped backslash does not begin one.
  return text.replace(
    /\\u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|\\u([\da-fA-F]{4})|\\./gs,
    (whole: string, hex: string | undefined) => (/^(0000|d[89a-f]..)$/i.test(hex ?? '') ? '\\ufffd' : whole),
  );
}
