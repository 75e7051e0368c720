/** A small warehouse with everything that `verify` and attestations read. */
import { DAY } from '../../src/core/interval.ts';
import { writeDocuments } from '../../src/store/catalogue/document.ts';
import type { Sql } from '../../src/store/connection/connect.ts';
import { ensurePartitions } from '../../src/store/upkeep/partition.ts';
import { makeSeries, prepareChunks, storePrepared } from '../bench/prepared.ts';

const FROM = Date.UTC(2023, 0, 1);
const SPAN = { from: FROM, to: FROM + 700 * DAY };
const AS_OF = Date.UTC(2025, 0, 1);

/** Stores candles, a late answer that changes one, a mended stretch, and a document with an old version. Resolves to the first series. */
export async function fillProved(sql: Sql): Promise<number> {
  await sql`insert into ops.origin (simulator) values ('made-up')`;
  await ensurePartitions(sql, '24h', SPAN);
  const ids = await makeSeries(sql, 'coin', 2, '24h', SPAN);
  const chunks = prepareChunks(ids, '24h', SPAN);
  for (const chunk of chunks) await storePrepared(sql, chunk, AS_OF);
  await changeOne(sql, ids[0]!, 5);
  await sql`select ops.uncover(${ids[1]!}, ${new Date(FROM)}, ${new Date(FROM + 3 * DAY)})`;
  for (const version of [1, 2]) {
    const text = `{"id":"sam","name":"Sam ${version}"}`;
    const documents = [{ id: 'sam', text, fingerprint: text }];
    await writeDocuments(sql, { kind: 'person', documents, at: AS_OF + version * DAY });
  }
  return ids[0]!;
}

/** Stores a later answer that changes the close of one candle of the newest year of this series. */
export async function changeOne(sql: Sql, seriesId: number, row: number): Promise<void> {
  const [first] = prepareChunks([seriesId], '24h', SPAN);
  const close = first!.candles.close.map((value, i) => (i === row ? value! * 1.0001 : value));
  await storePrepared(sql, { ...first!, candles: { ...first!.candles, close } }, AS_OF + row * DAY, Date.now());
}
