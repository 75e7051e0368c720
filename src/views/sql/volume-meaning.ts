/** Finds the meaning of the volume of a candle from stored candles, because upstream does not document it. */
import type { Sql } from '../../store/connection/connect.ts';

type VolumeMeaning = {
  readonly meaning: 'sum of the slot' | 'rolling day' | 'neither' | 'cannot tell yet' | 'cannot tell in time';
  /** Number of days that were compared with their hours. */
  readonly days: number;
  /** The ratio of the sum of the volumes of 24 hours to that of their day; the median. Null: no days were compared. */
  readonly hoursToDay: number | null;
};

const MOST_MS = 3_000;
const CANCELLED = '57014';

/** Reads twenty days of twenty coins at most, for three seconds at most. */
export async function readVolumeMeaning(sql: Sql): Promise<VolumeMeaning> {
  try {
    return (await sql.begin(async (tx) => {
      await tx`select set_config('statement_timeout', ${String(MOST_MS)}, true)`;
      const [row] = await tx<VolumeMeaning[]>`select meaning, days, hours_to_day from market.volume_meaning()`;
      return row!;
    })) as VolumeMeaning;
  } catch (error) {
    if ((error as { readonly code?: string }).code !== CANCELLED) throw error;
    return { meaning: 'cannot tell in time', days: 0, hoursToDay: null };
  }
}
