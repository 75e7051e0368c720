/** Checks what analysts must know of this database: the time zone of their sessions, and what a volume is. */
import type { App } from '../../app.ts';
import { formatCount } from '../../core/format.ts';
import { createClient } from '../../store/connection/connect.ts';
import { readVolumeMeaning } from '../../views/sql/volume-meaning.ts';
import { type Check, ok, warn } from './check.ts';

export async function checkForAnalysts(app: App): Promise<Check[]> {
  return [await checkTimeZone(app), await checkVolume(app)];
}

/** Of a session that says nothing about it, as most clients do: Chandler's own sessions are in UTC. */
async function checkTimeZone({ database: { url } }: App): Promise<Check> {
  const sql = createClient({ url, max: 1, applicationName: 'chandler doctor', timeZone: 'of the server' });
  try {
    const [session] = await sql<{ zone: string; isUtc: boolean; database: string }[]>`
      select current_setting('TimeZone') as zone, current_database() as database,
        (select bool_and(extract(timezone from at) = 0) from unnest('{2000-01-15Z,2000-07-15Z,2024-01-15Z,2024-07-15Z}'::timestamptz[]) at) as is_utc`;
    const { zone, isUtc, database } = session!;
    if (isUtc) return ok('time zone', `sessions on this database start in ${zone}`);
    return warn(
      'time zone',
      `sessions on this database start in ${zone}: a date in a statement means a day there, not in UTC`,
      `as the owner of the database: alter database "${database}" set timezone to 'UTC'; or in a session: set timezone to 'UTC'`,
    );
  } finally {
    await sql.end({ timeout: 1 });
  }
}

async function checkVolume({ database: { sql } }: App): Promise<Check> {
  const { meaning, days, hoursToDay } = await readVolumeMeaning(sql);
  const by = `, by ${formatCount(days)} stored days`;
  switch (meaning) {
    case 'sum of the slot':
      return ok('volume', `the volume of a candle is that of its slot${by}`);
    case 'rolling day':
      return warn(
        'volume',
        `the volume of an hour is that of a whole day${by}`,
        'do not add up volumes of less than a day, and do not weight prices with them',
      );
    case 'neither':
      return warn(
        'volume',
        `the volumes of 24 hours add up to ${hoursToDay!.toFixed(2)} of their day${by}`,
        'compare them before you add them up: select * from market.volume_meaning()',
      );
    default:
      return ok('volume', `${meaning} whether the volume of a candle is that of its slot or of the day before its end`);
  }
}
