/** A Postgres that is stopped in the middle of a run, and started again. */
import { describe } from 'vitest';
import { testStoppedAndStarted, useServer } from './database-unavailable.ts';

useServer();

describe('the database of DATABASE_URL', () => {
  testStoppedAndStarted(() => ({}), [0.3]);
});
