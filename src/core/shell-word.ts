/** A word as a user types it in a shell: in quotes if it needs them. */
export function shellWord(word: string): string {
  return /^[\w./:=@,+%-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
