/** The thrown value as an `Error`: unchanged if it is one, else wrapped with its text as the message. */
export function asError(cause: unknown): Error {
  return cause instanceof Error ? cause : new Error(String(cause));
}
