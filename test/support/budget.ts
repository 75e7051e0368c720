/** The budget of the account of a test's services, as `chandler quota`, `plan` and `schedule` read it. By the true time: a connection may be older than the database's clock. */
import { type Budget, readBudget } from '../../src/budget.ts';
import type { ServiceWorld } from './service-world.ts';

export function budgetOf({ config, clock, database: { sql } }: ServiceWorld): Promise<Budget> {
  return readBudget({ config, clock, database: { sql, ledger: sql }, overrides: { useDatabaseClock: false } });
}
