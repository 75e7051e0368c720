/** Databases made before the migrations were squashed for 0.1.0: `migrate` cannot change them, and reports how to move their data. */
import { fileURLToPath } from 'node:url';
import { StoreError } from '../connection/store-error.ts';

/** When the first of the old migrations was written. `ops.migration` stores it in `created_at`. */
const FIRST_OLD_MIGRATION = 1_795_255_294_017;

/** A sed script that renames the tables, columns and values whose names have changed since. */
const NEW_NAMES = fileURLToPath(new URL('../../../migrations/old-names.sed', import.meta.url));

/**
 * The commands that move the data. Partitions must exist before their rows. pg_dump writes tables in the order of their foreign keys.
 * Three tables are left out. `ops.migration` is already filled in the new database. Triggers fill `ops.version` while the rows are
 * loaded. `ops.catalogue_refusal` (the parts of the catalogue that the plan does not include) takes three requests to find again.
 */
const COMMANDS = [
  'DATABASE_URL="$NEW" chandler migrate',
  `pg_dump "$OLD" --section=pre-data --no-owner --no-privileges --table='market.candle_*_*' --table='market.ticker_history_*' > partitions.sql`,
  `pg_dump "$OLD" --data-only --schema=market --schema=ops --exclude-table='ops.migration*' --exclude-table=ops.version --exclude-table=ops.catalogue_refusal | sed -f '${NEW_NAMES}' > data.sql`,
  'psql "$NEW" --quiet --single-transaction --set=ON_ERROR_STOP=1 --file=partitions.sql --file=data.sql',
  'psql "$NEW" --quiet --command="select ops.adopt_evidence()" --output=/dev/null',
];

/** @param applied the `created_at` of each applied migration. @throws StoreError with the commands that move the data */
export function refuseOldMigrations(applied: readonly number[]): void {
  if (!applied.includes(FIRST_OLD_MIGRATION)) return;
  throw new StoreError(
    'this database was made by a version before 0.1.0, and nothing in it was changed',
    [
      'move its data into an empty database with these commands, where OLD and NEW are the addresses of the two databases and pg_dump is as new as the server:',
      ...COMMANDS.map((command) => `  ${command}`),
      'An embedded server runs as long as `chandler sql` of the old version is open: \\conninfo shows its address, and its password is in CHANDLER_HOME/password.',
    ].join('\n'),
  );
}
