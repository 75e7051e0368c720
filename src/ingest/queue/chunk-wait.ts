/** The place of a chunk in the queue, and why it waits there for its next attempt. */
import { z } from 'zod';
import type { Instant } from '../../clock.ts';
import { HIGHEST_PRIORITY } from '../../core/tier.ts';

/**
 * BullMQ takes the lowest number first, and puts a delayed job behind all jobs of its number (on Redis). So each priority has two numbers: the even
 * one for chunks that no worker has begun, and the odd one below it for retries, which came earlier.
 */
export function numberOfNew(priority: number): number {
  return 2 * (1 + HIGHEST_PRIORITY - priority);
}

/** `number`: the chunk's number until now. */
export function numberOfRetry(number: number): number {
  return number - (number % 2 === 0 ? 1 : 0);
}

/** The number of a chunk that gets another priority. A retry stays a retry. */
export function numberAt(priority: number, number: number): number {
  return numberOfNew(priority) - (number % 2);
}

const chunkWait = z.object({ until: z.number(), reason: z.string() });

/** Why a chunk waits for its next attempt, and until when. The queue stores it as the progress of the job. */
export type ChunkWait = z.infer<typeof chunkWait>;

/** Null: the chunk has not waited, or another version of Chandler recorded something else. */
export function readWait(progress: unknown): (ChunkWait & { readonly until: Instant }) | null {
  return chunkWait.safeParse(progress).data ?? null;
}

/** Where the chunks of a backfill are. */
export type ChunkPlaces = {
  /** Chunks that a worker has begun. */
  readonly inProgress: number;
  /** Chunks that wait for a worker. */
  readonly queued: number;
  /** Chunks that wait for their next attempt. */
  readonly retrying: number;
  /** Some of the retrying chunks, the soonest first. */
  readonly waits: readonly (ChunkWait & { readonly id: string; readonly attempts: number })[];
};
