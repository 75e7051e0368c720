/** S3-compatible storage as a destination. */
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  type S3Client,
} from '@aws-sdk/client-s3';
import { type Address, nameOfAddress, type S3Settings, type S3Timing } from './address.ts';
import type { Destination, StoredFile } from './destination.ts';
import { codeOf, createS3Client, explainS3, statusOf } from './s3-client.ts';
import { upload } from './s3-upload.ts';

type Place = { readonly client: S3Client; readonly bucket: string; readonly prefix: string; readonly name: string };

export type S3Options = S3Timing & { readonly partBytes?: number; readonly pageFiles?: number };

export function openS3(
  address: Extract<Address, { kind: 's3' }>,
  settings: S3Settings,
  { partBytes, pageFiles, ...timing }: S3Options = {},
): Destination {
  const name = nameOfAddress(address);
  const prefix = address.prefix === '' ? '' : `${address.prefix}/`;
  const place = { client: createS3Client(settings, timing), bucket: address.bucket, prefix, name };
  const keyOf = (path: string) => prefix + path;
  return {
    name,
    place: `${settings.endpoint ?? 'aws'} ${name}`,
    put: (path, write) => {
      const told = <T>(asked: Promise<T>) => explained(place, `writing ${path}`, asked);
      return upload(
        { client: place.client, Bucket: place.bucket, Key: keyOf(path), explained: told },
        write,
        partBytes,
      );
    },
    get: async (path, range) => {
      if (range !== undefined && range.from === range.to) return noBytes();
      const first = await explained(place, `reading ${path}`, getObject(place, keyOf(path), range ?? null, null));
      return first === null ? null : readOn(place, path, first, range ?? null);
    },
    list: () => listObjects(place, pageFiles),
    delete: async (path) => {
      const command = new DeleteObjectCommand({ Bucket: place.bucket, Key: keyOf(path) });
      await explained(place, `removing ${path}`, place.client.send(command));
    },
    sweep: () => explained(place, 'removing parts of incomplete uploads', abortUploads(place)),
  };
}

async function explained<T>({ name }: Place, doing: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw explainS3(error, name, doing);
  }
}

type Got = { readonly body: AsyncIterable<Uint8Array>; readonly etag: string | undefined };
type Range = { readonly from: number; readonly to: number | null };

/** Null: there is no such file. `etag`: reads only the file with this tag. */
async function getObject(
  { client, bucket }: Place,
  Key: string,
  range: Range | null,
  etag: string | null,
): Promise<Got | null> {
  const Range = range === null ? {} : { Range: `bytes=${range.from}-${range.to === null ? '' : range.to - 1}` };
  try {
    const found = await client.send(
      new GetObjectCommand({ Bucket: bucket, Key, ...Range, ...(etag === null ? {} : { IfMatch: etag }) }),
    );
    return { body: found.Body as AsyncIterable<Uint8Array>, etag: found.ETag };
  } catch (error) {
    if (codeOf(error) === 'NoSuchKey' || (statusOf(error) === 404 && codeOf(error) !== 'NoSuchBucket')) return null;
    // The range begins behind the end of the file, which is shorter than expected.
    if (statusOf(error) === 416) return { body: noBytes(), etag: undefined };
    throw error;
  }
}

const MOST_CUTS = 5;

/** Yields the bytes, even when the connection is cut on the way: then it requests the rest of the same file. */
async function* readOn(place: Place, path: string, first: Got, range: Range | null): AsyncGenerator<Uint8Array> {
  let at = range?.from ?? 0;
  let got: Got = first;
  for (let cuts = 0; ; cuts++) {
    try {
      for await (const chunk of got.body) {
        at += chunk.length;
        yield chunk;
      }
      return;
    } catch (error) {
      // Only the end of the answer was cut off. The rest is empty, which is no range: some storage would send the whole file.
      if (at === range?.to) return;
      if (cuts >= MOST_CUTS || first.etag === undefined) throw explainS3(error, place.name, `reading ${path}`);
    }
    const rest = { from: at, to: range?.to ?? null };
    const again = getObject(place, place.prefix + path, rest, first.etag);
    const found = await explained(place, `reading ${path}`, again);
    if (found === null) throw new Error(`${path} no longer exists`);
    got = found;
  }
}

async function* noBytes(): AsyncGenerator<Uint8Array> {
  // An empty file has no chunks.
}

async function* listObjects(place: Place, MaxKeys: number | undefined): AsyncGenerator<StoredFile> {
  const { client, bucket, prefix } = place;
  let ContinuationToken: string | undefined;
  do {
    const command = new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, MaxKeys, ContinuationToken });
    const page = await explained(place, 'listing its files', client.send(command));
    for (const { Key = '', Size = 0 } of page.Contents ?? []) {
      // Web consoles create empty objects that stand for folders.
      if (!Key.endsWith('/')) yield { path: Key.slice(prefix.length), bytes: Size };
    }
    ContinuationToken = page.IsTruncated ? page.NextContinuationToken : undefined;
  } while (ContinuationToken !== undefined);
}

async function abortUploads({ client, bucket, prefix }: Place): Promise<void> {
  let marker: { readonly KeyMarker?: string | undefined; readonly UploadIdMarker?: string | undefined } = {};
  for (let isMore = true; isMore; ) {
    const command = new ListMultipartUploadsCommand({ Bucket: bucket, Prefix: prefix, ...marker });
    const page = await client.send(command).catch((error: unknown) => {
      // Storage that cannot list uploads has a rule of its own that removes them.
      if (statusOf(error) === 501 || codeOf(error) === 'NotImplemented') return { IsTruncated: false, Uploads: [] };
      throw error;
    });
    for (const { Key, UploadId } of page.Uploads ?? []) {
      if (!Key?.startsWith(prefix)) continue;
      const abort = new AbortMultipartUploadCommand({ Bucket: bucket, Key, UploadId });
      await client.send(abort).catch((error: unknown) => {
        if (codeOf(error) !== 'NoSuchUpload') throw error;
      });
    }
    isMore = page.IsTruncated ?? false;
    if ('NextKeyMarker' in page) marker = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker };
  }
}
