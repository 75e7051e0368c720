import { expect, test } from 'vitest';
import { kindOf, type StatementKind, withoutPasswords } from '../../../src/cli/sql/sql-kind.ts';

test.each<[StatementKind, string[]]>([
  [
    'reads',
    ['SELECT 1', '-- delete\n(select 1)', '/* a /* b */ */ with x as (delete from t) select 1', 'explain select 1'],
  ],
  ['begins', ['begin', 'START TRANSACTION read only']],
  ['ends', ['commit', 'END', 'rollback work', 'abort', 'commit work and no chain', "prepare transaction 'x'"]],
  [
    'neutral',
    ['set work_mem to default', 'rollback to a', 'rollback work to a', 'commit and chain', 'prepare x as select 1'],
  ],
  [
    'changes',
    ['update t set x = 1', 'execute x', "commit prepared 'x'", 'do $$ begin end $$', 'call p()', 'vacuum', ''],
  ],
])('a statement that %s is recognised', (kind, statements) => {
  expect(statements.map((statement) => [statement, kindOf(statement)])).toEqual(statements.map((one) => [one, kind]));
});

test.each([
  ["alter role x password 'a''b'; select 1", "alter role x password '***'; select 1"],
  ["create role x login PASSWORD E'a\\'b'", "create role x login PASSWORD '***'"],
  ['alter role x encrypted password $p$a$p$', "alter role x encrypted password '***'"],
  ["options (user 'x', password 'secret')", "options (user 'x', password '***')"],
  ["select 'no password here'", "select 'no password here'"],
])('a password is masked: %s', (sql, masked) => {
  expect(withoutPasswords(sql)).toBe(masked);
});
