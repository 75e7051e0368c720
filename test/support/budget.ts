/**
 * The budget of a test's account, as `chandler quota`, `plan` and `schedule` read it. By the true time, because a connection may have been
 * opened before the database's clock was replaced.
 */
import { type Budget, readBudget } from '../../src/budget.ts';
import type { ServiceWorld } from './service-world.ts';

export function budgetOf({ config, clock, database: { sql } }: ServiceWorld): Promise<Budget> {
  return readBudget({ config, clock, database: { sql, ledger: sql }, surroundings: { useDatabaseClock: false } });
}
