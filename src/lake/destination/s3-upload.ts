/**
 * Puts a file of unknown length into S3-compatible storage, in little memory. It sends parts while the next one fills. A file that fits into one
 * part is a single request. Either way, the file appears as a whole or not at all.
 */
import {
  AbortMultipartUploadCommand,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { formatBytes } from '../../core/format.ts';
import type { ByteSink } from './destination.ts';
import { DestinationError } from './destination-error.ts';
import { codeOf } from './s3-client.ts';

/** All parts except the last have the same size, which some stores require. Two of them are in memory. */
const PART_BYTES = 16 * 1024 * 1024;
/** The limit of S3. */
const MOST_PARTS = 10_000;

type UploadTarget = {
  readonly client: S3Client;
  readonly Bucket: string;
  readonly Key: string;
  /** Explains an error of the storage. Errors of `write` do not pass through it. */
  readonly explained: <T>(asked: Promise<T>) => Promise<T>;
};

/** Resolves to the result of `write`. When it rejects, the parts that were sent are removed. */
export async function upload<T>(
  target: UploadTarget,
  write: (sink: ByteSink) => Promise<T>,
  partBytes: number = PART_BYTES,
): Promise<T> {
  const parts = createParts(target, partBytes);
  try {
    const written = await write(parts.sink);
    await parts.complete();
    return written;
  } catch (error) {
    // If the parts cannot be removed now, the next writer's `sweep` removes them. The first error is the cause.
    await parts.abort().catch(() => undefined);
    throw error;
  }
}

function createParts(target: UploadTarget, partBytes: number) {
  const { client, Bucket, Key, explained } = target;
  const done: CompletedPart[] = [];
  // The first part grows on demand, because most files are small.
  let filling: Buffer = Buffer.alloc(0);
  let filled = 0;
  let spare: Buffer | null = null;
  let uploadId: string | undefined;
  let sending: Promise<void> = Promise.resolve();
  let total = 0;
  const begin = async () => {
    const created = await explained(client.send(new CreateMultipartUploadCommand({ Bucket, Key })));
    uploadId = created.UploadId;
    if (uploadId === undefined) throw new Error('the storage returned no id for a multipart upload');
  };
  const send = async (part: Buffer, PartNumber: number) => {
    const sized = { Body: part, ContentLength: part.length };
    const command = new UploadPartCommand({ Bucket, Key, UploadId: uploadId, PartNumber, ...sized });
    const { ETag } = await explained(client.send(command));
    done.push({ PartNumber, ETag });
  };
  const sendFull = async () => {
    // The part before must be sent first, so that two parts are in memory, and never three.
    await sending;
    if (uploadId === undefined) await begin();
    const number = done.length + 1;
    if (number >= MOST_PARTS)
      throw new DestinationError(
        'refused',
        `${Key} is longer than ${formatBytes(partBytes * MOST_PARTS)}, the limit of S3 for parts of this size`,
        'export into more files: leave out --layout, or narrow it',
      );
    const part = filling;
    filling = spare ?? Buffer.allocUnsafe(partBytes);
    filled = 0;
    sending = send(part, number).then(() => {
      spare = part;
    });
    // The next part waits for this promise, and gets its error. Until then the rejection must not count as unhandled.
    sending.catch(() => undefined);
  };
  return {
    sink: async (bytes: Uint8Array) => {
      total += bytes.length;
      for (let at = 0; at < bytes.length; ) {
        const taken = Math.min(bytes.length - at, partBytes - filled);
        if (filled + taken > filling.length) filling = grown(filling, filled, filled + taken, partBytes);
        filling.set(bytes.subarray(at, at + taken), filled);
        filled += taken;
        at += taken;
        if (filled === partBytes) await sendFull();
      }
    },
    complete: async () => {
      await sending;
      const last = filling.subarray(0, filled);
      if (uploadId === undefined) {
        const command = new PutObjectCommand({ Bucket, Key, Body: last, ContentLength: last.length });
        await explained(client.send(command));
        return;
      }
      if (last.length > 0) await send(last, done.length + 1);
      await explained(completeParts(target, uploadId, done, total));
    },
    abort: async () => {
      await sending.catch(() => undefined);
      if (uploadId !== undefined)
        await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId: uploadId }));
    },
  };
}

async function completeParts(
  { client, Bucket, Key }: UploadTarget,
  UploadId: string,
  Parts: CompletedPart[],
  total: number,
): Promise<void> {
  try {
    await client.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } }));
  } catch (error) {
    // The client may have sent the request twice: then the answer to the first one was lost, and the upload is complete.
    if (codeOf(error) !== 'NoSuchUpload') throw error;
    const found = await client.send(new HeadObjectCommand({ Bucket, Key }));
    if (found.ContentLength !== total) throw error;
  }
}

function grown(buffer: Buffer, filled: number, least: number, most: number): Buffer {
  const larger = Buffer.allocUnsafe(Math.min(most, Math.max(least, 2 * buffer.length, 64 * 1024)));
  buffer.copy(larger, 0, 0, filled);
  return larger;
}
