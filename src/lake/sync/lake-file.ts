/** The names of the files of a lake. A part of each name depends on the state of the file, so that no state ever overwrites another. */
import { createHash } from 'node:crypto';
import { DATASETS } from '../dataset/datasets.ts';

const PART_DIGITS = 16;
/** Only in folders that a lake has: a copy of a lake, or of a part of it, in another folder or behind a link is somebody else's. */
const FOLDERS = DATASETS.map(({ name }) => name).join('|');
const LAKE_FILE = new RegExp(`^(${FOLDERS})/(\\w+=[\\w-]+/)*part(-[\\w]+)?-[\\da-f]{${PART_DIGITS}}\\.parquet$`);

/** The path `…/year=2024/part-q1.parquet` becomes `…/year=2024/part-q1-0123456789abcdef.parquet` for a version. */
export function lakePath(path: string, version: string): string {
  const part = createHash('sha256').update(version).digest('hex').slice(0, PART_DIGITS);
  return path.replace(/(\.[a-z]+)$/, `-${part}$1`);
}

/** Whether only the lake gives such a name. */
export function isLakeFile(path: string): boolean {
  return LAKE_FILE.test(path);
}
