import { expect, test } from 'vitest';
import { isLakeFile, lakePath } from '../../../src/lake/sync/lake-file.ts';

test('a file of the lake is known by its name, and a copy of a lake below it is not one of its files', () => {
  for (const path of ['candles/interval=1h/quote=usd/year=2024/part-q1.parquet', 'exchange_history/part.parquet']) {
    expect(isLakeFile(path)).toBe(false);
    expect(isLakeFile(lakePath(path, 'version'))).toBe(true);
    // The next run would remove such a file a day later.
    expect(isLakeFile(`old/${lakePath(path, 'version')}`)).toBe(false);
    // So it would with a link to a folder of another lake.
    expect(isLakeFile(lakePath(path, 'version').replace('/', '/old/'))).toBe(false);
  }
});
