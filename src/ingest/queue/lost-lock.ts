/** Jobs that a worker loses while it holds them. */

/** Codes of BullMQ's errors (its `ErrorCode`): the job is gone, has no lock, or another worker has locked it. */
const LOST = new Set<unknown>([-1, -2, -6]);

/**
 * Is this the error that a worker gets when its lock on a job has ended, because the worker was slow or its engine was away? Another worker has the
 * job, or has finished it. That is harmless, because a worker checks a chunk before it sends a request.
 */
export function isLostLock(error: Error & { readonly code?: unknown }): boolean {
  return LOST.has(error.code) || /^could not renew lock|is not in the active state/.test(error.message);
}
