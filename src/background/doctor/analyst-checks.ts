/** Checks for analysts: the time zone of their sessions, the meaning of a volume, and whether their logins can hold up Chandler. */
import type { App } from '../../app.ts';
import { formatCount, formatCounted } from '../../core/format.ts';
import { createClient } from '../../store/connection/connect.ts';
import { readVolumeMeaning } from '../../views/sql/volume-meaning.ts';
import { type Check, ok, warn } from './check.ts';

export async function checkForAnalysts(app: App): Promise<Check[]> {
  return [await checkTimeZone(app), await checkVolume(app), await checkReaders(app)];
}

/** The time zone of a session that sets none, as most clients do. Chandler's own sessions are in UTC. */
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

/** Checks logins that may connect to this database but own nothing of Chandler: whether they can hold it up. */
export async function checkReaders({ database: { sql } }: App): Promise<Check> {
  const [row] = await sql<{ logins: string[]; locks: boolean; objects: boolean; statements: boolean }[]>`
    select array(
        select r.rolname::text from pg_roles r where r.rolcanlogin and not r.rolsuper and has_database_privilege(r.oid, current_database(), 'connect')
          and not pg_has_role(r.oid, (select nspowner from pg_namespace where nspname = 'ops'), 'member') order by 1
      ) as logins,
      has_function_privilege('public', 'pg_advisory_lock(bigint)', 'execute') as locks,
      has_function_privilege('public', 'lo_create(oid)', 'execute') as objects,
      not exists (select from pg_event_trigger where evtname = 'chandler_refuse_readers' and evtenabled in ('O', 'A')) as statements`;
  const { logins, locks, objects, statements } = row!;
  if (logins.length === 0) return ok('readers', "no login but Chandler's and superusers may connect to this database");
  const harmful = [
    locks && 'take advisory locks that BullMQ needs',
    objects && 'fill the disk with large objects',
    statements && 'hold up others with statements that are refused only after they wait for a lock',
  ].filter((one) => one !== false);
  const others = logins.length > 1 ? ` and ${formatCounted(logins.length - 1, 'other login')}` : '';
  const who = `login '${logins[0]}'${others}`;
  if (harmful.length === 0) return ok('readers', `${who} may connect to this database, and can hold up nothing`);
  const fix = 'as a superuser, in this database: select ops.admit_no_harm()';
  return warn('readers', `${who} may connect to this database, and can ${harmful.join(', ')}`, fix);
}
