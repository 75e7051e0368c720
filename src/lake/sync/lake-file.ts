/** How the files of a lake are named: a part of the name says which state the file is of, so that no file is ever overwritten by another state. */
import { createHash } from 'node:crypto';

const PART_DIGITS = 16;
const LAKE_FILE = new RegExp(`^[a-z_]+/([\\w=-]+/)*part(-[\\w]+)?-[\\da-f]{${PART_DIGITS}}\\.parquet$`);

/** `…/year=2024/part-q1.parquet` of a version is `…/year=2024/part-q1-0123456789abcdef.parquet`. */
export function lakePath(path: string, version: string): string {
  const part = createHash('sha256').update(version).digest('hex').slice(0, PART_DIGITS);
  return path.replace(/(\.[a-z]+)$/, `-${part}$1`);
}

/** Is this a name that only the lake gives? */
export function isLakeFile(path: string): boolean {
  return LAKE_FILE.test(path);
}
