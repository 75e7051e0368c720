/** The place of a chunk in the queue, and why it waits there for its next attempt. */
import { z } from 'zod';
import type { Instant } from '../../clock.ts';
import { HIGHEST_PRIORITY } from '../../core/tier.ts';

/**
 * BullMQ takes the lowest number first, and puts a job that was delayed behind all jobs of its number (on Redis). So each priority has two
 * numbers: the even one for chunks that no worker has begun, and the odd one before it for retries, which came earlier than those.
 */
export function numberOfNew(priority: number): number {
  return 2 * (1 + HIGHEST_PRIORITY - priority);
}

/** `number`: of the chunk until now. */
export function numberOfRetry(number: number): number {
  return number - (number % 2 === 0 ? 1 : 0);
}

/** The number of a chunk that gets another priority; a retry stays one. */
export function numberAt(priority: number, number: number): number {
  return numberOfNew(priority) - (number % 2);
}

const chunkWait = z.object({ until: z.number(), reason: z.string() });

/** Why a chunk waits for its next attempt, and until when; kept in the queue, as the progress of its job. */
export type ChunkWait = z.infer<typeof chunkWait>;

/** Null: the chunk has not waited, or another version recorded something else. */
export function readWait(progress: unknown): (ChunkWait & { readonly until: Instant }) | null {
  return chunkWait.safeParse(progress).data ?? null;
}

/** Where the chunks of a backfill are. */
export type ChunkPlaces = {
  /** A worker has begun them. */
  readonly inProgress: number;
  /** They wait for a worker. */
  readonly queued: number;
  /** They wait for their next attempt. */
  readonly retrying: number;
  /** Of those some, the soonest first. */
  readonly waits: readonly (ChunkWait & { readonly id: string; readonly attempts: number })[];
};
