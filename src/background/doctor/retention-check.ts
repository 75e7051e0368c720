/** Whether all services of the database, and this process, keep data equally long. */
import type { App } from '../../app.ts';
import { retentionOf } from '../../config.ts';
import { formatKept, type Retention } from '../../core/settings/retention-settings.ts';
import { readSettings } from '../../settings.ts';
import { readRunningSettings } from '../../store/work/instance.ts';
import { type Check, warn } from './check.ts';

const VARIABLES = {
  tickers: 'CHANDLER_KEEP_TICKERS',
  fetches: 'CHANDLER_KEEP_FETCHES',
  candles: 'CHANDLER_KEEP_CANDLES',
  global: 'CHANDLER_KEEP_GLOBAL',
  exchanges: 'CHANDLER_KEEP_EXCHANGES',
} as const satisfies Record<keyof Retention, string>;

/** A warning for each setting that differs. */
export async function checkRetention({ clock, config, database: { sql } }: App): Promise<Check[]> {
  const services = (await readRunningSettings(sql, clock.now())).map(({ owner, settings }) => ({
    owner,
    keep: retentionOf(readSettings(settings).settings),
  }));
  if (services.length === 0) return [];
  return (Object.keys(VARIABLES) as (keyof Retention)[]).flatMap((table) => {
    const who = new Map<string, string[]>();
    for (const { owner, keep } of services) {
      const kept = formatKept(keep[table]);
      who.set(kept, [...(who.get(kept) ?? []), owner]);
    }
    const here = formatKept(config.keep[table]);
    if (!who.has(here)) who.set(here, ['this process']);
    if (who.size === 1) return [];
    const values = [...who].map(([kept, owners]) => `${kept} for ${owners.join(', ')}`).join('; ');
    const consequence = table === 'candles' ? 'candles that another fetches again' : 'rows that another keeps';
    return [
      warn(
        'retention',
        `${VARIABLES[table]} is ${values}: one removes ${consequence}`,
        `set the same ${VARIABLES[table]} for all services and commands of this database, and restart the services`,
      ),
    ];
  });
}
