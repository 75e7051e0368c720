/** The client of S3-compatible storage, and what its errors mean. */
import { S3Client, type S3ServiceException } from '@aws-sdk/client-s3';
import type { S3Settings, S3Timing } from './address.ts';
import { DestinationError, type DestinationFault } from './destination-error.ts';

/** The client retries errors that may go away (no answer, 5xx, 429), with a growing random wait of up to 20 s. */
const ATTEMPTS = 5;
const CONNECT_MS = 10_000;
/** Longest time without a byte in either direction. Completing a large upload may take long, and the storage sends spaces meanwhile. */
const IDLE_MS = 60_000;

export function createS3Client(
  { endpoint, region, pathStyle, credentials }: S3Settings,
  { attempts = ATTEMPTS, idleMs = IDLE_MS }: S3Timing = {},
): S3Client {
  return new S3Client({
    region,
    forcePathStyle: pathStyle,
    maxAttempts: attempts,
    retryMode: 'standard',
    // Storage other than AWS often supports no checksums except the SHA-256 of the signature, which each request has.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: idleMs },
    ...(endpoint === null ? {} : { endpoint }),
    ...(credentials === null
      ? {}
      : {
          credentials: {
            accessKeyId: credentials.accessKeyId,
            secretAccessKey: credentials.secretAccessKey,
            ...(credentials.sessionToken === null ? {} : { sessionToken: credentials.sessionToken }),
          },
        }),
  });
}

/** The storage's code for the error, like `NoSuchKey`. */
export function codeOf(error: unknown): string {
  return error instanceof Error ? error.name : '';
}

export function statusOf(error: unknown): number | null {
  return (error as Partial<S3ServiceException>)?.$metadata?.httpStatusCode ?? null;
}

const KEYS = 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN, if they are temporary)';
const REFUSED: Readonly<Record<string, readonly [what: string, remedy: string]>> = {
  NoSuchBucket: ['there is no such bucket', 'make it, or correct the address'],
  InvalidAccessKeyId: ['the storage does not know the access key', `correct AWS_ACCESS_KEY_ID: ${KEYS}`],
  SignatureDoesNotMatch: ['the secret key is wrong', 'correct AWS_SECRET_ACCESS_KEY'],
  InvalidToken: ['the session token is not valid', `correct AWS_SESSION_TOKEN: ${KEYS}`],
  ExpiredToken: ['the session token has expired', 'set fresh keys'],
  AccessDenied: [
    'the access key does not allow that',
    'allow it to list, get, put and delete objects, and to list and abort multipart uploads, below the address',
  ],
  PermanentRedirect: ['the bucket is in another region', 'set AWS_REGION to that of the bucket'],
  AuthorizationHeaderMalformed: ['the bucket is in another region', 'set AWS_REGION to that of the bucket'],
  CredentialsProviderError: ['no keys are set for the storage', KEYS],
};

/** Converts an error of the storage into one that explains the problem. Returns other errors unchanged. */
export function explainS3(error: unknown, place: string, doing: string): unknown {
  if (error instanceof DestinationError || !(error instanceof Error) || isOurs(error)) return error;
  const status = statusOf(error);
  const said = `${codeOf(error)}${status === null ? '' : ` (${status})`}`;
  const told = (fault: DestinationFault, what: string, remedy: string) =>
    new DestinationError(fault, `${place}: ${doing} failed: ${what}`, remedy, withoutRequest(error));
  const known = REFUSED[codeOf(error)] ?? (status === 403 ? REFUSED.AccessDenied : undefined);
  if (known !== undefined) return told('refused', ...known);
  if (status !== null && status >= 400 && status < 500 && status !== 408 && status !== 429)
    return told('refused', `the storage answered ${said}`, 'correct the address or AWS_ENDPOINT_URL');
  const { code } = error as NodeJS.ErrnoException;
  const why = status === null ? `no answer (${code ?? codeOf(error)})` : `the storage answered ${said}`;
  return told('unavailable', why, 'try again later, or correct AWS_ENDPOINT_URL');
}

/** The client stores the request in its errors. Its headers may have a token, which must not be logged. */
function withoutRequest({ name, message }: Error): Error {
  return new Error(`${name}: ${message}`);
}

/** Whether this is a bug of ours, which no retry corrects, or a requested abort. */
function isOurs(error: Error): boolean {
  return error.name === 'AbortError' || [TypeError, RangeError, ReferenceError].some((fault) => error instanceof fault);
}
