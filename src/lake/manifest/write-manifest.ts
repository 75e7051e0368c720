/** Writes a manifest: head, lists, and the SHA-256 of both as its root. */
import { createHash } from 'node:crypto';
import type { Destination } from '../destination/destination.ts';
import { LISTS, MANIFEST_FILE, MANIFEST_FORMAT, type ManifestElement, type ManifestHead } from './manifest.ts';

const FLUSHED_AT = 1 << 16;

/** `elements` must be in the order of the lists. Replaces the manifest before in one step. Resolves to the root. */
export function writeManifest(
  destination: Destination,
  head: ManifestHead,
  elements: AsyncIterable<ManifestElement>,
): Promise<string> {
  return destination.put(MANIFEST_FILE, async (sink) => {
    const hash = createHash('sha256');
    let text = '';
    const flush = async () => {
      hash.update(text);
      await sink(Buffer.from(text));
      text = '';
    };
    text += `{"manifest":${MANIFEST_FORMAT},${JSON.stringify(head).slice(1, -1)}`;
    let list = -1;
    let isFirst = true;
    const open = (next: number) => {
      while (list < next) {
        if (list >= 0) text += isFirst ? ']' : '\n]';
        list++;
        if (list < LISTS.length) text += `,\n"${LISTS[list]}":[`;
        isFirst = true;
      }
    };
    for await (const { list: name, element } of elements) {
      const wanted = LISTS.indexOf(name);
      if (wanted < list) throw new Error(`an element of ${name} comes behind ${LISTS[list]}`);
      open(wanted);
      text += `${isFirst ? '' : ','}\n${JSON.stringify(element)}`;
      isFirst = false;
      if (text.length > FLUSHED_AT) await flush();
    }
    open(LISTS.length);
    text += ',\n';
    await flush();
    const root = hash.digest('hex');
    await sink(Buffer.from(`"root":"${root}"}\n`));
    return root;
  });
}
