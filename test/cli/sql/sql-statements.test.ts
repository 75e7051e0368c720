import { describe, expect, test } from 'vitest';
import { describePosition, splitStatements } from '../../../src/cli/sql/sql-statements.ts';

const texts = (sql: string) => splitStatements(sql).map((statement) => statement.text);

describe('splitStatements', () => {
  test.each<[string, string, string[]]>([
    ['cuts at semicolons', 'select 1; select 2;', ['select 1', 'select 2']],
    ['leaves out what is empty', ';; \n -- nothing\n; /* nor /* here */ */ ;', []],
    ['not in quotes', `select 'a;b''c;' ; select "x;""y" from t`, [`select 'a;b''c;'`, `select "x;""y" from t`]],
    ['not in escaped strings', String.raw`select E'a\';b'; select 2`, [String.raw`select E'a\';b'`, 'select 2']],
    [
      'not in dollar quotes',
      'do $$ begin; end $$; select $a$ ;$$; $a$',
      ['do $$ begin; end $$', 'select $a$ ;$$; $a$'],
    ],
    [
      'not in comments',
      'select 1 -- a;b\n; select /* ; /* ; */ ; */ 2',
      ['select 1 -- a;b', 'select /* ; /* ; */ ; */ 2'],
    ],
    [
      'not in parentheses',
      'create rule r as on insert to t do (select 1; select 2); select 3',
      ['create rule r as on insert to t do (select 1; select 2)', 'select 3'],
    ],
    [
      'not in the body of a function',
      'create function f() returns int begin atomic select 1; select case when true then 2 end; end; select 3',
      ['create function f() returns int begin atomic select 1; select case when true then 2 end; end', 'select 3'],
    ],
    ['begin of a transaction is no body', 'begin; select 1; end; select 2', ['begin', 'select 1', 'end', 'select 2']],
    [
      'parameters are no dollar quotes',
      'execute p($1); select a$1$b; select 2',
      ['execute p($1)', 'select a$1$b', 'select 2'],
    ],
    ['keeps what is unfinished', "select 1; select 'oh", ['select 1', "select 'oh"]],
  ])('%s', (_, sql, expected) => {
    expect(texts(sql)).toEqual(expected);
  });

  test('knows the position at which each statement begins', () => {
    expect(splitStatements('select 1;\n  select 2').map((s) => s.offset)).toEqual([0, 12]);
  });
});

test('gives positions in the original text', () => {
  const sql = "select '🚀';\nselect *\n  frm x";
  const [, second] = splitStatements(sql);
  expect(describePosition(sql, second!.offset, second!.text.indexOf('frm') + 1)).toBe('line 3, column 3');
  expect(describePosition("select '🚀', nope", 0, 13)).toBe('line 1, column 13');
});
