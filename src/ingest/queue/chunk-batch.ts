/**
 * Several chunks in one job of the queue. A job costs the queue's engine a fixed price (on Postgres a sixth of a whole chunk), which
 * nobody notices where a pace decides how fast it goes; where none does, several chunks share it. Each of them remains a request, a unit
 * of quota and a transaction of its own.
 */
import { type ChunkJob, chunkJobId } from './chunk-job.ts';

/** Of one backfill, worked off one after the other. */
export type ChunkBatch = { readonly kind: 'batch'; readonly chunks: readonly ChunkJob[] };
/** What a job carries. */
export type JobData = ChunkJob | ChunkBatch;

/** Measured: with 8 the engine takes 3 % of the time a chunk takes, and with 16 hardly less. */
const MOST_TOGETHER = 8;
/** A job holds so many ms of a pace at most: whoever is more urgent, or shares the pace, must not wait long behind it. */
const TOGETHER_MS = 10;
/** Jobs for each worker at least, so that none stands idle while another has several chunks left. */
const JOBS_EACH = 2;
/** No chunk's own name has it. */
const BETWEEN = '+';

/** How many of `chunks` that are added at once share a job, at a pace of so many requests a second (null: none). */
export function togetherAt(perSecond: number | null, chunks: number, concurrency: number): number {
  const byPace = perSecond === null ? MOST_TOGETHER : Math.floor((perSecond * TOGETHER_MS) / 1000);
  return Math.max(1, Math.min(MOST_TOGETHER, byPace, Math.floor(chunks / (JOBS_EACH * concurrency))));
}

/** In their order. */
export function jobsOf(chunks: readonly ChunkJob[], together: number): JobData[] {
  const jobs: JobData[] = [];
  for (let i = 0; i < chunks.length; i += together) jobs.push(jobOf(chunks.slice(i, i + together)));
  return jobs;
}

/** A chunk that would be alone is a job as it is. */
export function jobOf(chunks: readonly ChunkJob[]): JobData {
  const [first, ...others] = chunks;
  return first !== undefined && others.length === 0 ? first : { kind: 'batch', chunks };
}

/** Names its chunks, so that nobody has to read a job to know what is in the queue. */
export function jobIdOf(job: JobData): string {
  return chunksOf(job).map(chunkJobId).join(BETWEEN);
}

/** The names of the chunks that a job was made of. */
export function chunkIdsOf(jobId: string): readonly string[] {
  return jobId.split(BETWEEN);
}

export function chunksOf(job: JobData): readonly ChunkJob[] {
  return job.kind === 'batch' ? job.chunks : [job];
}
