/** Opens the destination of an address. */
import type { Address, S3Settings, S3Timing } from './address.ts';
import type { Destination } from './destination.ts';
import { openFolder } from './folder.ts';

/** Sends no request yet. A folder ignores `timing`. */
export async function openDestination(
  address: Address,
  settings: S3Settings,
  timing: S3Timing = {},
): Promise<Destination> {
  if (address.kind === 'folder') return openFolder(address.folder);
  // The S3 client is large, so it is not loaded for a folder.
  const { openS3 } = await import('./s3.ts');
  return openS3(address, settings, timing);
}
