/** An export in the other formats and layouts is imported. */
import path from 'node:path';
import { expect, test } from 'vitest';
import { runCommand } from '../../support/cli.ts';
import { COINS, exportTo } from '../filled.ts';
import { files, here, imports, testFormats, there, useExports } from './from-export.ts';

useExports();

testFormats(['csv', 'ndjson', 'arrow']);

test('layouts of other programs are refused, except freqtrade file by file', async () => {
  for (const layout of ['lean', 'jesse', 'freqtrade'] as const) {
    const format = layout === 'freqtrade' ? 'arrow' : 'csv';
    const selection = { layout, format, datasets: (await import('../filled.ts')).datasets('candles') } as const;
    await exportTo(there, path.join(files.folder, layout), { ...selection, intervals: ['24h'], coinIds: [...COINS] });
    const { code, err } = await imports(layout);
    expect(code).toBe(2);
    expect(err).toContain(
      `has the layout ${layout}, which does not keep all values of a candle, so its candles cannot be imported exactly`,
    );
  }
  const env = { DATABASE_URL: here.url };
  const { readdirSync } = await import('node:fs');
  const folder = path.join(files.folder, 'freqtrade');
  const file = (readdirSync(folder, { recursive: true }) as string[]).find((name) =>
    /BTC.*\.(feather|arrow)$/.test(name),
  )!;
  const read = await runCommand(
    ['import', path.join(folder, file), '--source', 'f', '--coin', 'BTC', '--interval', '24h', '--json'],
    { env },
  );
  expect(read.err).toBe('');
  expect(JSON.parse(read.out).added).toBeGreaterThan(50);
  const said = await imports('parquet', '--coin', 'BTC');
  expect(said.err).toContain('is an export, and its manifest says what is in it; leave out --coin');
});
