/** The last answer of an upload is lost: the client retries, and the storage no longer knows the upload. */
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import { expect, test } from 'vitest';
import { upload } from '../../../src/lake/destination/s3-upload.ts';

function clientWhere(found: number | null): S3Client {
  const gone = Object.assign(new Error('The specified upload does not exist'), { name: 'NoSuchUpload' });
  const send = async (command: unknown) => {
    if (command instanceof CreateMultipartUploadCommand) return { UploadId: 'u' };
    if (command instanceof CompleteMultipartUploadCommand) throw gone;
    if (!(command instanceof HeadObjectCommand)) return { ETag: 'e' };
    if (found === null) throw Object.assign(new Error('not there'), { name: 'NotFound' });
    return { ContentLength: found };
  };
  return { send } as unknown as S3Client;
}

function put(found: number | null): Promise<void> {
  const target = { client: clientWhere(found), Bucket: 'b', Key: 'k', explained: <T>(asked: Promise<T>) => asked };
  return upload(target, (sink) => sink(Buffer.alloc(250)), 100);
}

test('the upload succeeds when the whole file is there', async () => {
  await expect(put(250)).resolves.toBeUndefined();
});

test('the upload fails when another file is there, or none', async () => {
  await expect(put(249)).rejects.toThrow('The specified upload does not exist');
  await expect(put(null)).rejects.toThrow('not there');
});
