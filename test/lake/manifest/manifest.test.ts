import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openFolder } from '../../../src/lake/destination/folder.ts';
import type { ManifestElement, ManifestHead } from '../../../src/lake/manifest/manifest.ts';
import { DamagedManifest, readManifest } from '../../../src/lake/manifest/read-manifest.ts';
import { writeManifest } from '../../../src/lake/manifest/write-manifest.ts';
import { temporaryFolder } from '../format/rows.ts';

let folder: string;
let remove: () => void;
beforeEach(() => {
  ({ folder, remove } = temporaryFolder());
});
afterEach(() => remove());

const HEAD: ManifestHead = {
  kind: 'export',
  at: '2025-01-01T00:00:00.000Z',
  chandler: '0.1.0',
  origin: 'upstream',
  format: 'parquet',
  layout: 'hive',
  what: ['candles'],
  coins: ['a-],"root":"x', 'ü'],
  intervals: null,
  from: null,
  to: null,
  finalOnly: false,
};
const FILE = { dataset: 'coins', interval: null, quote: null, from: null, to: null, rows: 1, bytes: 2, version: null };
const dataset = (name: string): ManifestElement => ({ list: 'datasets', element: { name, columns: null } });
const file = (name: string): ManifestElement => ({
  list: 'files',
  element: { path: name, sha256: 'f'.repeat(64), ...FILE },
});

const retired = (path: string): ManifestElement => ({
  list: 'retired',
  element: { path, since: '2025-01-01T00:00:00.000Z' },
});

async function* each(elements: readonly ManifestElement[]) {
  yield* elements;
}

async function readAll() {
  const manifest = (await readManifest(openFolder(folder)))!;
  const elements: ManifestElement[] = [];
  for (;;) {
    const { value, done } = await manifest.elements.next();
    if (done) return { head: manifest.head, elements, root: value.root };
    elements.push(value);
  }
}

const write = (elements: readonly ManifestElement[]) => writeManifest(openFolder(folder), HEAD, each(elements));
const manifestFile = () => path.join(folder, 'manifest.json');

describe.each([
  ['without elements', []],
  ['with one list', [file('a')]],
  ['with several', [dataset('candles'), dataset('prices'), file('a\n"b'), file('c'), retired('d')]],
  ['with many', Array.from({ length: 2_000 }, (_, i) => file(`file-${i}`))],
])('a manifest %s', (_, elements) => {
  test('is read as it was written, line by line', async () => {
    const root = await write(elements);
    expect(await readAll()).toEqual({ head: { manifest: 1, ...HEAD }, elements, root });
  });

  test('is plain JSON for other readers', async () => {
    const root = await write(elements);
    const {
      datasets,
      series,
      files,
      retired,
      root: found,
      manifest,
      ...head
    } = JSON.parse(readFileSync(manifestFile(), 'utf8'));
    expect([found, manifest, head]).toEqual([root, 1, HEAD]);
    expect([datasets.length, series, files.length, retired.length]).toEqual([
      elements.filter(({ list }) => list === 'datasets').length,
      [],
      elements.filter(({ list }) => list === 'files').length,
      elements.filter(({ list }) => list === 'retired').length,
    ]);
  });
});

test('a folder without a manifest gives null', async () => {
  expect(await readManifest(openFolder(folder))).toBeNull();
});

test.each<[string, (text: string) => string, RegExp]>([
  ['empty', () => '', /is empty/],
  ['something else', () => '{"name":"x"}\n', /is not a manifest/],
  ['no JSON', (text) => text.replace('"sha256":', '"sha256"'), /is damaged: it has a line that is not JSON/],
  ['of a later version', (text) => text.replace('"manifest":1', '"manifest":2'), /has format 2.*use a newer version/],
  ['cut off', (text) => text.slice(0, -80), /is truncated|not JSON/],
  ['without its root', (text) => text.split('\n').slice(0, -2).join('\n'), /is truncated: it has no root/],
  ['changed', (text) => text.replace('"rows":1', '"rows":2'), /its root is/],
  ['longer', (text) => `${text}x\n`, /has lines after its root/],
  ['of a list that nobody knows', (text) => text.replace('"files":[', '"others":['), /a list others/],
])('a manifest that is %s is rejected', async (_, change, message) => {
  await write([dataset('candles'), file('a')]);
  writeFileSync(manifestFile(), change(readFileSync(manifestFile(), 'utf8')));
  const read = readAll();
  await expect(read).rejects.toThrow(DamagedManifest);
  await expect(read).rejects.toThrow(message);
});

test('lists in another order than the manifest has are rejected', async () => {
  await expect(write([file('a'), dataset('candles')])).rejects.toThrow(/comes behind/);
});
