/** What Postgres cannot hold, though JSON can, replaced: an upstream's texts may be anything. */

/** The character 0. */
export function storableText(text: string): string {
  return text.replaceAll('\0', '\ufffd');
}

/** As jsonb takes it: without the character 0 and without halves of a surrogate pair. */
export function storableJson(value: unknown): string {
  return JSON.stringify(value ?? null).replace(/\\u(?:0000|d[89a-f][0-9a-f]{2})/gi, '\\ufffd');
}
