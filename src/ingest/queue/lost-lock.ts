/** Jobs that a worker loses while it holds them. */

/** Codes of BullMQ's errors, which name them `ErrorCode`: the job is gone, is locked by nobody, or is locked by another. */
const LOST = new Set<unknown>([-1, -2, -6]);

/**
 * The worker was so slow, or its engine was away for so long, that its lock on a job ended: another worker has the job, or has finished it.
 * That is harmless, because a chunk is checked before its request.
 */
export function isLostLock(error: Error & { readonly code?: unknown }): boolean {
  return LOST.has(error.code) || /^could not renew lock|is not in the active state/.test(error.message);
}
