/** The address of a destination: a folder, or `s3://bucket/prefix`; and the settings of S3-compatible storage. */
import type { ParsedSetting } from '../../core/settings/setting.ts';

export type Address =
  | { readonly kind: 'folder'; readonly folder: string }
  /** `prefix` has no slashes at its ends; empty: the whole bucket. */
  | { readonly kind: 's3'; readonly bucket: string; readonly prefix: string };

/** The settings `AWS_*` and `CHANDLER_S3_PATH_STYLE`. */
export type S3Settings = {
  /** Null: AWS, in `region`. */
  readonly endpoint: string | null;
  readonly region: string;
  /** True: `https://host/bucket/key` instead of `https://bucket.host/key`. */
  readonly pathStyle: boolean;
  /** Null: the credentials of the machine (its role, or the files of the AWS command line). */
  readonly credentials: {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken: string | null;
  } | null;
};

/** How often a request is sent at most, and how long the connection may be silent. */
export type S3Timing = { readonly attempts?: number; readonly idleMs?: number };

/** The bucket names that AWS allows, and some more that other storage allows. None of them needs escaping in an address. */
const BUCKET = /^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$/;
/** Only characters that no reader of the files has to escape. */
const PREFIX = /^[\w.=+-]+(\/[\w.=+-]+)*$/;

export function parseAddress(text: string): ParsedSetting<Address> {
  const [, scheme, rest] = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/i.exec(text) ?? [];
  if (scheme === undefined) return { ok: { kind: 'folder', folder: text } };
  // Some users put their keys into such an address, so the message does not repeat it.
  if (rest!.includes('@'))
    return {
      problem: 'which contains an @; leave out keys, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
      shown: '(not shown)',
    };
  if (scheme.toLowerCase() !== 's3')
    return {
      problem:
        'which is neither a folder nor s3://bucket/prefix; for other storage with an S3 interface set AWS_ENDPOINT_URL',
    };
  const [bucket = '', ...path] = rest!.replace(/\/+$/, '').split('/');
  const prefix = path.join('/');
  if (bucket === '') return { problem: 'which names no bucket; write it like s3://bucket/prefix' };
  if (!BUCKET.test(bucket))
    return {
      problem:
        'whose bucket has no valid name: 3 to 63 lower-case letters, digits, and . - _, with a letter or digit at both ends',
    };
  if (prefix !== '' && !PREFIX.test(prefix))
    return { problem: 'whose prefix may have letters, digits, and . _ = + - between single slashes' };
  // Programs that read addresses, like curl, would look in another place.
  if (path.some((part) => part === '.' || part === '..'))
    return { problem: 'whose prefix has a part . or ..; leave it out' };
  return { ok: { kind: 's3', bucket, prefix } };
}

/** The address as it was given, without slashes at the end. */
export function nameOfAddress(address: Address): string {
  if (address.kind === 'folder') return address.folder;
  return `s3://${address.bucket}${address.prefix === '' ? '' : `/${address.prefix}`}`;
}
