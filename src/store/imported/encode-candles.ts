/** Encodes imported candles as rows of a binary COPY, and adds up their hashes at the same time: both use the same eight bytes of each number. */
import type { Instant } from '../../clock.ts';
import { addCandleHash, CANDLE_WORDS, type HashSum, NULL_WORD, setCandleWords } from '../../core/candle-hash.ts';

/** The columns of each row, in this order. Staged rows have two more columns, which say where the row was read. */
export const COLUMNS = 'open_time, open, high, low, close, volume, market_cap, series_id, is_final';
export const STAGED_COLUMNS = `${COLUMNS}, file, record`;

/** The first and the last bytes of a COPY. */
export const COPY_HEADER = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
export const COPY_END = Buffer.from([0xff, 0xff]);

/** Postgres counts from 2000-01-01, in microseconds. */
const EPOCH_MS = Date.UTC(2000, 0, 1);
const TWO_32 = 2 ** 32;
const FIELDS = 9;
const MOST_BYTES_EACH = 2 + 7 * 12 + 8 + 5 + 8 + 12;

type Value = number | null;

type CandleEncoder = {
  /** Sets the candle for the next calls. Its values must be finite. */
  set(openTime: Instant, open: Value, high: Value, low: Value, close: Value, volume: Value, marketCap: Value): void;
  hashInto(sum: HashSum): void;
  append(seriesId: number, isFinal: boolean): void;
  /** Appends the candle with the numbers of its file and of its record. */
  appendStaged(seriesId: number, isFinal: boolean, file: number, record: number): void;
  /** The rows since the last call, in a buffer that the encoder does not reuse. Null if there are none. */
  take(): Buffer | null;
};

/** `mostRows` is the largest number of rows between two calls of `take`. */
export function createCandleEncoder(mostRows: number): CandleEncoder {
  const words = new Int32Array(CANDLE_WORDS);
  let buffer = Buffer.alloc(0);
  let view = new DataView(buffer.buffer);
  let at = 0;
  let time = 0;
  const appendFields = (fields: number, seriesId: number, isFinal: boolean) => {
    if (buffer.length === 0) {
      buffer = Buffer.allocUnsafeSlow(mostRows * MOST_BYTES_EACH);
      view = new DataView(buffer.buffer);
    }
    view.setInt16(at, fields);
    view.setInt32(at + 2, 8);
    const microseconds = (time - EPOCH_MS) * 1_000;
    view.setInt32(at + 6, Math.floor(microseconds / TWO_32));
    // `|` reduces a whole number modulo 2^32.
    view.setInt32(at + 10, microseconds | 0);
    at += 14;
    for (let i = 2; i < CANDLE_WORDS; i += 2) {
      // This word stands for null: no finite number has these bits.
      if (words[i] === NULL_WORD) {
        view.setInt32(at, -1);
        at += 4;
      } else {
        view.setInt32(at, 8);
        view.setInt32(at + 4, words[i]!);
        view.setInt32(at + 8, words[i + 1]!);
        at += 12;
      }
    }
    view.setInt32(at, 4);
    view.setInt32(at + 4, seriesId);
    view.setInt32(at + 8, 1);
    view.setUint8(at + 12, isFinal ? 1 : 0);
    at += 13;
  };
  return {
    set: (openTime, ...values) => {
      time = openTime;
      setCandleWords(words, openTime, ...values);
    },
    hashInto: (sum) => addCandleHash(sum, words),
    append: (seriesId, isFinal) => appendFields(FIELDS, seriesId, isFinal),
    appendStaged: (seriesId, isFinal, file, record) => {
      appendFields(FIELDS + 2, seriesId, isFinal);
      view.setInt32(at, 4);
      view.setInt32(at + 4, file);
      view.setInt32(at + 8, 8);
      view.setBigInt64(at + 12, BigInt(record));
      at += 20;
    },
    take: () => {
      if (at === 0) return null;
      const taken = buffer.subarray(0, at);
      buffer = Buffer.alloc(0);
      at = 0;
      return taken;
    },
  };
}
