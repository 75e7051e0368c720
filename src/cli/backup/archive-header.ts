/** The first bytes of an archive of pg_dump. They say who wrote it, even when pg_restore is too old to read it. */
import { open } from 'node:fs/promises';

export type ArchiveHeader = {
  /** Version of the server that was dumped: `18.4`. */
  readonly postgres: string;
  /** Version of the pg_dump that wrote it. */
  readonly dumpedBy: number;
};

const LENGTH = 4_096;
const MAGIC = 'PGDMP';
/** A minor version of the format: from it on, one byte says how the archive is compressed. */
const COMPRESSION_IS_A_BYTE = 15;
/** Second, minute, hour, day, month, year, and whether it is summer time. */
const NUMBERS_OF_TIME = 7;

/** Null when the file is no archive in the custom format as Postgres 12 and later write it. */
export async function readHeader(file: string): Promise<ArchiveHeader | null> {
  const handle = await open(file, 'r');
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(LENGTH), 0, LENGTH, 0);
    return parseHeader(buffer.subarray(0, bytesRead));
  } finally {
    await handle.close();
  }
}

/**
 * The header: the magic, three bytes of version, the sizes of a number and of an offset, the kind of archive, and the compression. Then
 * follow numbers (a byte for the sign, then the lowest byte first) and texts (a length, then that many bytes).
 */
function parseHeader(bytes: Buffer): ArchiveHeader | null {
  if (bytes.subarray(0, MAGIC.length).toString('latin1') !== MAGIC) return null;
  const [major, minor, , sizeOfNumber = 0] = bytes.subarray(MAGIC.length);
  if (major !== 1 || minor === undefined || sizeOfNumber < 1 || sizeOfNumber > 6) return null;
  let at = MAGIC.length + 6;
  at += minor >= COMPRESSION_IS_A_BYTE ? 1 : 1 + sizeOfNumber;
  at += NUMBERS_OF_TIME * (1 + sizeOfNumber);
  const nextText = (): string => {
    const end = at + 1 + sizeOfNumber;
    if (end > bytes.length) return '';
    const length = bytes.readUIntLE(at + 1, sizeOfNumber);
    at = end + length;
    return bytes.subarray(end, at).toString('utf8');
  };
  nextText(); // the name of the database
  const [postgres, dumpedBy] = [nextText(), nextText()].map((text) => /^\d+(\.\d+)*/.exec(text)?.[0]);
  if (postgres === undefined || dumpedBy === undefined) return null;
  return { postgres, dumpedBy: Number.parseInt(dumpedBy, 10) };
}
