/** A file that gzip has compressed is read in pieces, and its source ends with its reader. */
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { Destination } from '../../../../src/lake/destination/destination.ts';
import { bytesOf } from '../../../../src/lake/import/table/file-bytes.ts';

const text = Array.from({ length: 100_000 }, (_, i) => `${i},${(i * 7_919) % 10_007}`).join('\n');
const packed = gzipSync(text);

/** A file whose source gives small pieces, and fails at this byte. `closed` resolves when the source has ended. */
function fileOf(failsAt = Number.POSITIVE_INFINITY) {
  let close: () => void = () => undefined;
  const closed = new Promise<void>((resolve) => {
    close = resolve;
  });
  async function* source() {
    try {
      for (let at = 0; at < packed.length; at += 1_000) {
        if (at >= failsAt) throw new Error('the disk does not answer');
        yield packed.subarray(at, at + 1_000);
      }
    } finally {
      close();
    }
  }
  const destination = { get: async () => source() } as unknown as Destination;
  return { file: { destination, path: 'x.csv.gz', bytes: packed.length, isGzip: true }, closed };
}

test('all bytes of a .gz are read', async () => {
  const pieces: Uint8Array[] = [];
  for await (const piece of bytesOf(fileOf().file)) pieces.push(piece);
  expect(Buffer.concat(pieces).toString()).toBe(text);
});

test('an error while a .gz is read reaches the reader', async () => {
  for (const at of [0, 50_000]) {
    const reads = (async () => {
      for await (const _ of bytesOf(fileOf(at).file));
    })();
    await expect(reads).rejects.toThrow('the disk does not answer');
  }
});

test('a reader that stops after the first piece of a .gz closes its file', async () => {
  const { file, closed } = fileOf();
  for await (const piece of bytesOf(file)) {
    expect(piece.length).toBeGreaterThan(0);
    break;
  }
  await closed;
});
