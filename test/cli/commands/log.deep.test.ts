/** The log of changes: rarer forms in which SQL changes something. */
import { beforeEach, describe } from 'vitest';
import { begin, testChanges, useWarehouse } from './log.ts';

useWarehouse();

describe('SQL in the log', () => {
  beforeEach(begin);

  testChanges([
    'select 1; update ops.track set priority = 3',
    "select setval('ops.audit_id_seq', 1000)",
    'select 1 as one into market.mine',
    'begin; select 1; with gone as (delete from ops.track returning *) select * from gone; commit',
    'explain analyze delete from ops.track',
    'vacuum ops.track',
  ]);
});
