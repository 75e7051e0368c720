/** Whether a restore may fill a database: it contains nothing of a warehouse, or only an unused warehouse. */
import type { App } from '../../app.ts';
import { formatCounted, formatInstant, shellWord } from '../../core/format.ts';
import { readOccupation, readUnprovedRestore } from '../../store/backup/target.ts';
import { type ReasonToKeep, reasonToKeep, removeUnused } from '../../store/backup/unused-warehouse.ts';
import { UsageError } from '../shell/exit.ts';
import { attestationBeside, hasFile } from './backup-file.ts';

type FreeDatabase = {
  /** Empty schemas that somebody has created. */
  readonly empty: readonly string[];
  /** Whether there is an unused warehouse, which `clear` removes. */
  readonly isUnused: boolean;
};

/** @throws UsageError when the database already contains a part of a warehouse. `file`: the backup */
export async function requireFree(app: App, file: string): Promise<FreeDatabase> {
  const { sql } = app.database;
  const { taken, empty, warehouse, database } = await readOccupation(sql);
  if (taken.length === 0) return { empty, isUnused: false };
  if (warehouse === null) {
    throw refusal(app, `the database '${database}' has a schema ${taken.join(' and ')} already`);
  }
  const found = `the database '${database}' has a warehouse of ${warehouse.series} series already`;
  const unproved = await explainUnproved(app, file);
  if (unproved !== null) throw refusal(app, found, unproved);
  if (warehouse.series > 0) throw refusal(app, found);
  const keeps = await reasonToKeep(sql, app.clock.now());
  if (keeps !== null) throw keptRefusal(app, found, keeps);
  return { empty: [], isUnused: true };
}

/** Removes an unused warehouse, as late as possible. @throws UsageError when somebody uses it meanwhile */
export async function clear(app: App): Promise<void> {
  const keeps = await removeUnused(app.database.sql, app.clock.now());
  if (keeps !== null) throw keptRefusal(app, 'the database has a warehouse already', keeps);
}

/** Describes a restore that was killed or failed after it had loaded everything: which steps are missing, and the commands for them. */
async function explainUnproved({ database: { sql } }: App, file: string): Promise<string | null> {
  const restore = await readUnprovedRestore(sql);
  if (restore === null) return null;
  const { at, actor, command } = restore;
  const against = attestationBeside(file);
  const commands = ['chandler migrate', 'chandler verify'];
  if (await hasFile(against)) commands.push(`chandler verify --against ${shellWord(against)}`);
  return [
    `a restore has loaded a whole backup into it but has not verified it: that restore still runs, was killed, or failed`,
    ` (${command}, ${actor}, ${formatInstant(at)}); unless it still runs, run its remaining steps: ${commands.join(', then ')}`,
  ].join('');
}

function keptRefusal(app: App, found: string, keeps: ReasonToKeep): UsageError {
  if (keeps.why === 'used by') {
    return new UsageError(
      `${found}, which is empty, but a service uses it: ${keeps.owners.join(', ')}; stop it, and run this command again half a minute later`,
    );
  }
  if (keeps.why === 'holds') {
    const [first, ...others] = keeps.tables;
    const more = others.length === 0 ? '' : ` and ${formatCounted(others.length, 'other table')}`;
    return refusal(app, `${found}, with rows in ${first}${more}`, null, CLEAR.holds);
  }
  const why =
    keeps.why === 'rights'
      ? 'which this user may not remove'
      : 'which is empty, but something in other schemas depends on it';
  return refusal(app, `${found}, ${why}`, null, CLEAR[keeps.why]);
}

const DROP = `psql "$DATABASE_URL" -c 'drop schema market, ops cascade'`;
const CLEAR = {
  holds: `, or remove the warehouse, if you do not need it: ${DROP}`,
  rights: `, or let its owner remove it, if you do not need it: ${DROP}`,
  dependents: '',
};

function refusal({ config }: App, found: string, unproved: string | null = null, clear = ''): UsageError {
  const empty =
    config.databaseUrl === null
      ? 'name a folder that does not exist in CHANDLER_HOME'
      : 'make an empty database (createdb) and name it in DATABASE_URL';
  const orClear = config.databaseUrl === null ? '' : clear;
  const text = `${found}, and a restore never replaces data; `;
  return new UsageError(unproved === null ? `${text}${empty}${orClear}` : `${text}${unproved}. Or ${empty}.`);
}
