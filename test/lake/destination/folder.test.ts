import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Destination, readRange } from '../../../src/lake/destination/destination.ts';
import { openFolder } from '../../../src/lake/destination/folder.ts';
import { temporaryFolder } from '../format/rows.ts';

let folder: string;
let remove: () => void;
let destination: Destination;
beforeEach(() => {
  ({ folder, remove } = temporaryFolder());
  destination = openFolder(path.join(folder, 'out'));
});
afterEach(() => remove());

const put = (file: string, text: string) => destination.put(file, (sink) => sink(Buffer.from(text)));
const at = (file: string) => path.join(folder, 'out', file);

async function get(file: string, range?: { from: number; to: number }): Promise<string | null> {
  const chunks = await destination.get(file, range);
  if (chunks === null) return null;
  let text = '';
  for await (const chunk of chunks) text += Buffer.from(chunk).toString();
  return text;
}

async function listed(): Promise<[string, number][]> {
  const found: [string, number][] = [];
  for await (const { path: file, bytes } of destination.list()) found.push([file, bytes]);
  return found.sort();
}

test('puts, gets, lists and deletes files by their paths; a folder is removed with its last file', async () => {
  expect(await get('a/b/c.txt')).toBeNull();
  expect(await listed()).toEqual([]);
  await put('a/b/c.txt', 'one two');
  await put('d.txt', '');
  expect(await listed()).toEqual([
    ['a/b/c.txt', 7],
    ['d.txt', 0],
  ]);
  expect(await get('a/b/c.txt')).toBe('one two');
  expect(await get('a/b/c.txt', { from: 4, to: 6 })).toBe('tw');
  expect(await get('a/b/c.txt', { from: 4, to: 4 })).toBe('');
  expect(await get('a/b')).toBeNull();
  await put('a/b/c.txt', 'three');
  expect(await get('a/b/c.txt')).toBe('three');
  await destination.delete('a/b/c.txt');
  await destination.delete('a/b/c.txt');
  expect(existsSync(at('a'))).toBe(false);
  expect(existsSync(at('.'))).toBe(true);
});

test('a file appears once it is complete, and a failed write changes nothing', async () => {
  await put('file', 'before');
  const writing = destination.put('file', async (sink) => {
    await sink(Buffer.from('half'));
    expect(readFileSync(at('file'), 'utf8')).toBe('before');
    expect(readdirSync(at('.'))).toHaveLength(2);
    expect(await listed()).toEqual([['file', 6]]);
    throw new Error('no more');
  });
  await expect(writing).rejects.toThrow('no more');
  expect(readdirSync(at('.'))).toEqual(['file']);
  expect(await get('file')).toBe('before');
});

test('the caller may reuse its buffer as soon as a write returns', async () => {
  const bytes = Buffer.from('abc');
  await destination.put('file', async (sink) => {
    await sink(bytes);
    bytes.fill('x');
    await sink(bytes);
  });
  expect(await get('file')).toBe('abcxxx');
});

test('the sweep removes what killed writers left, and nothing else', async () => {
  mkdirSync(at('a'), { recursive: true });
  writeFileSync(at('a/x.parquet.0f8fad5b-d9cb-469f-a165-70867728950e.part'), 'half');
  writeFileSync(at('a/mine.part'), 'mine');
  await destination.sweep();
  expect(readdirSync(at('a'))).toEqual(['mine.part']);
});

test('lists and sweeps files in folders to which links lead, once each', async () => {
  mkdirSync(path.join(folder, 'disk/deeper'), { recursive: true });
  mkdirSync(at('.'));
  symlinkSync(path.join(folder, 'disk'), at('candles'));
  symlinkSync('..', path.join(folder, 'disk/deeper/up'));
  symlinkSync('nowhere', at('dead'));
  await put('candles/a', 'abc');
  const part = 'candles/deeper/x.0f8fad5b-d9cb-469f-a165-70867728950e.part';
  writeFileSync(at(part), 'half');
  expect(await listed()).toEqual([['candles/a', 3]]);
  await destination.sweep();
  expect(existsSync(at(part))).toBe(false);
  await destination.delete('candles/a');
  expect(existsSync(at('candles'))).toBe(true);
});

test('links that lead in a circle end the list', async () => {
  for (const name of ['a', 'b']) mkdirSync(at(name), { recursive: true });
  symlinkSync('../b', at('a/to-b'));
  symlinkSync('../a', at('b/to-a'));
  // It would list the whole disk.
  symlinkSync(path.parse(folder).root, at('b/root'));
  await put('b/file', '');
  const files = (await listed()).map(([file]) => file);
  expect(files).toContain('a/to-b/file');
  expect(files.filter((file) => `${file}`.includes('root/'))).toEqual([]);
});

test('reading a range of a missing file, or beyond the end of one, is an error', async () => {
  await put('file', 'abc');
  expect(Buffer.from(await readRange(destination, 'file', { from: 1, to: 3 })).toString()).toBe('bc');
  await expect(readRange(destination, 'file', { from: 1, to: 4 })).rejects.toThrow(/shorter than 4 bytes/);
  await expect(readRange(destination, 'other', { from: 0, to: 1 })).rejects.toThrow(/other no longer exists/);
});

test('a folder that cannot exist is refused in plain words', async () => {
  writeFileSync(path.join(folder, 'file'), '');
  const below = openFolder(path.join(folder, 'file/out'));
  await expect(below.put('a', async () => undefined)).rejects.toMatchObject({
    fault: 'refused',
    message: expect.stringMatching(/file\/out\/a: a part of its path is not a folder/),
  });
});

test('one folder has one name, whichever link leads to it, even before it exists', () => {
  mkdirSync(path.join(folder, 'disk'));
  symlinkSync(path.join(folder, 'disk'), path.join(folder, 'link'));
  expect(openFolder(path.join(folder, 'link/new/out')).place).toBe(openFolder(path.join(folder, 'disk/new/out')).place);
  mkdirSync(path.join(folder, 'disk/new/out'), { recursive: true });
  expect(openFolder(path.join(folder, 'link/new/../new/out/')).place).toBe(
    openFolder(path.join(folder, 'disk/new/out')).place,
  );
});
