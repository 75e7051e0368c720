/** Databases made before the migrations of 0.1.0 were put together: `migrate` cannot change them, and says how to move their data. */
import { fileURLToPath } from 'node:url';
import { StoreError } from '../connection/store-error.ts';

/** When the first migration of those days was written; `ops.migration` keeps it in `created_at`. */
const FIRST_OLD_MIGRATION = 1_795_255_294_017;

/** Tables, columns and values whose names have changed since. */
const NEW_NAMES = fileURLToPath(new URL('../../../migrations/old-names.sed', import.meta.url));

/**
 * Partitions must be there before their rows. `ops.migration` says what the new database has already, and triggers fill `ops.version`
 * while the rows are loaded. pg_dump writes tables in the order of their foreign keys. What the plan
 * does not give of the catalogue (`ops.catalogue_refusal`) is left out: three requests find it out again.
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
