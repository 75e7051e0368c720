import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { HOUR } from '../../../src/core/interval.ts';
import { createClient } from '../../../src/store/connection/connect.ts';
import { createStatementRunner, type StatementRunner } from '../../../src/views/sql/statement.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { seedSeries } from '../../support/warehouse.ts';

const FROM = Date.UTC(2024, 0, 1);
let database: TestDatabase;
let runner: StatementRunner;
beforeAll(async () => {
  database = await createTestDatabase();
  const span = { from: FROM, to: FROM + 10 * HOUR };
  const candles = Array.from({ length: 10 }, (_, i) => FROM + i * HOUR);
  await seedSeries(database.sql, { coinId: 'btc-bitcoin', interval: '1h', wanted: [span], covered: [span], candles });
  await database.sql.unsafe("create table public.secret (word text); insert into public.secret values ('hunter2')");
  await database.sql.unsafe(`
    create function public.innocent() returns text language sql stable security definer as 'select word from public.secret'`);
  runner = createStatementRunner({ url: database.url, timeoutMs: 2_000 });
});
afterAll(async () => {
  await runner?.close();
  await database?.drop();
});

const run = (statement: string, limit = 100) => runner.run({ caller: 'somebody', statement, limit });
const refusal = async (statement: string): Promise<string> => {
  try {
    const answer = await run(statement);
    return `answered: ${JSON.stringify(answer)}`;
  } catch (error) {
    if (error instanceof Error && error.name === 'StatementError') return error.message;
    throw error;
  }
};

describe('a statement', () => {
  it('reads the views of `market`, with or without its name', async () => {
    const answer = await run('select coin_id, open_time, close, is_final from candles order by open_time limit 2;');
    expect(answer).toEqual({
      columns: ['coin_id', 'open_time', 'close', 'is_final'],
      rows: [
        ['btc-bitcoin', '2024-01-01T00:00:00Z', expect.any(Number), true],
        ['btc-bitcoin', '2024-01-01T01:00:00Z', expect.any(Number), true],
      ],
      truncated: false,
    });
    expect((await run('with c as (table market.coverage) select slots_covered from c')).rows).toEqual([[10]]);
    expect((await run('select count(*), max(high) > min(low) -- all of them\n from market.candles')).rows).toEqual([
      [10, true],
    ]);
  });

  it('has a limit for what it writes to disk while it sorts', async () => {
    expect((await run("select current_setting('temp_file_limit')")).rows).toEqual([['1GB']]);
  });

  it('returns values that JSON cannot hold as text, and keeps its order', async () => {
    const answer = await run(`
      select n, 9007199254740993::int8 as whole, 0.10000000000000000001 as exact, 1.5::numeric as half, 'NaN'::float8 as nan,
        null::text as nothing, array[1, 2] as list, '{"a": [1]}'::jsonb as json, '1 day'::interval as span, date '2024-02-03' as day
      from generate_series(3, 1, -1) n order by n desc`);
    const rest = [
      '9007199254740993',
      '0.10000000000000000001',
      1.5,
      'NaN',
      null,
      [1, 2],
      { a: [1] },
      '1 day',
      '2024-02-03',
    ];
    expect(answer.rows).toEqual([3, 2, 1].map((n) => [n, ...rest]));
  });

  it('is cut at the limit of rows, and at the size of an answer', async () => {
    const many = await run('select n from generate_series(1, 1000000) n', 3);
    expect([many.rows, many.truncated]).toEqual([[[1], [2], [3]], true]);
    expect((await run('select n from generate_series(1, 3) n', 3)).truncated).toBe(false);
    const large = await run("select repeat('x', 1000000) from generate_series(1, 10)");
    expect([large.rows.length, large.truncated]).toEqual([4, true]);
    expect((await run("select repeat('x', 5000000)")).rows).toEqual([]);
  });

  it('may use functions that only compute', async () => {
    const answer = await run(`
      select random() < 1 as sure, percentile_cont(0.5) within group (order by n) as half, sum(n) over () as all_of_them,
        to_char(now(), 'YYYY') > '2000' as late, regexp_replace('abc', 'b', 'x') as other, clock_timestamp() >= now() as after
      from generate_series(1, 3) n group by n limit 1`);
    expect(answer.rows).toHaveLength(1);
  });

  it.each([
    ['selec 1', /syntax error at or near "selec"/],
    ['', /syntax error/],
    ['select * from market.nothing', /relation "market.nothing" does not exist/],
    ['select closing from market.candles', /column "closing" does not exist/],
    ['select 1/0', /division by zero/],
    ['select $1::int', /there is no parameter \$1/],
    ['select 1\0', /character 0/],
  ])('that is wrong gets the message of Postgres: %j', async (statement, message) => {
    expect(await refusal(statement)).toMatch(message);
  });

  it('that takes too long is cancelled', async () => {
    expect(await refusal('select count(*) from generate_series(1, 100000000000)')).toBe(
      'the statement took longer than 2 s',
    );
  });

  it('that waits for a lock is cancelled early', async () => {
    const sql = createClient({ url: database.url, max: 1 });
    await sql.begin(async (tx) => {
      await tx`lock table market.candle in access exclusive mode`;
      expect(await refusal('select count(*) from market.candles')).toBe(
        'the statement had to wait for a lock for too long',
      );
    });
    await sql.end();
  });

  it('needs a login that may become the analyst, and the error tells the operator', async () => {
    const name = `stranger_${database.url.slice(-8)}`;
    await database.sql.unsafe(`create role ${name} login password 'x'`);
    const url = new URL(database.url);
    url.username = name;
    url.password = 'x';
    const stranger = createStatementRunner({ url: url.href });
    await expect(stranger.run({ caller: 'somebody', statement: 'select 1 as a', limit: 1 })).rejects.toThrow(
      /cannot become the role chandler_sql; .* grant chandler_sql/,
    );
    await database.sql.unsafe(`grant chandler_sql to ${name}`);
    expect(
      (await stranger.run({ caller: 'somebody', statement: 'select count(*) from candles', limit: 1 })).rows,
    ).toEqual([[10]]);
    await stranger.close();
    await database.sql.unsafe(`revoke chandler_sql from ${name}; drop role ${name}`);
  });

  it('may have several columns of one name, all columns of a join, and hundreds of columns', async () => {
    expect(await run('select 1 as a, 2 as a, 3, 4, array[5] as a')).toEqual({
      columns: ['a', 'a', '?column?', '?column?', 'a'],
      rows: [[1, 2, 3, 4, [5]]],
      truncated: false,
    });
    const joined = await run(`
      select * from candles a join candles b using (coin_id) join coverage c on c.coin_id = b.coin_id
      where a.open_time < b.open_time order by a.open_time, b.open_time`);
    expect(joined.columns.filter((name) => name === 'open_time')).toHaveLength(2);
    expect(joined.columns.filter((name) => name === 'coin_id')).toHaveLength(2);
    expect(joined.rows[0]).toHaveLength(joined.columns.length);
    expect(joined.rows).toHaveLength(45);
    const wide = Array.from({ length: 300 }, (_, i) => `${i} as "column ""${i}"""`).join(', ');
    const answer = await run(`select ${wide}, null as nothing`);
    expect([answer.columns.length, answer.columns[299], answer.rows[0]!.slice(298)]).toEqual([
      301,
      'column "299"',
      [298, 299, null],
    ]);
    expect(await run('select from generate_series(1, 2)')).toEqual({ columns: [], rows: [[], []], truncated: false });
  });

  it('leaves nothing prepared on the server', async () => {
    const narrow = createStatementRunner({ url: database.url, connections: 1 });
    for (const n of [1, 2, 3]) await narrow.run({ caller: 'a', statement: `select ${n} as n`, limit: 1 });
    const { rows } = await narrow.run({ caller: 'a', statement: 'select name from pg_prepared_statements', limit: 9 });
    expect(rows).toEqual([]);
    await narrow.close();
  });
});

describe('statements of several callers', () => {
  const ask = (runner: StatementRunner, caller: string, statement = 'select 1 as a') =>
    runner.run({ caller, statement, limit: 1 }).then(
      ({ rows }) => rows[0]![0],
      (error: Error & { status?: number }) => `${error.status} ${error.message}`,
    );
  /** Runs until it is cancelled. */
  // Only time ends it: it needs no room for intermediate rows.
  const LONG =
    'select count(*) from generate_series(1, 9999) a, generate_series(1, 9999) b, generate_series(1, 9999) c';
  const TURN = /^429 the statement waited .* for its turn .*; try again$/;

  it('wait for a free connection, but not behind too many others', async () => {
    const narrow = createStatementRunner({ url: database.url, connections: 1, waiting: 2 });
    const asked = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((caller) => ask(narrow, caller)));
    expect(asked).toEqual([1, 1, 1, ...Array(3).fill('429 too many statements at once; try again')]);
    expect(await ask(narrow, 'a')).toBe(1);
    await narrow.close();
  });

  it('run one at a time for each caller, so that no caller fills the queue alone', async () => {
    const wide = createStatementRunner({ url: database.url, connections: 2, waiting: 4, timeoutMs: 4_000 });
    let isFirstOver = false;
    const first = ask(wide, 'greedy', LONG).finally(() => {
      isFirstOver = true;
    });
    const others = [ask(wide, 'greedy'), ask(wide, 'greedy'), ask(wide, 'greedy')];
    // The other connection is free for other callers, at once.
    expect(await ask(wide, 'modest')).toBe(1);
    expect(isFirstOver).toBe(false);
    expect(await first).toBe('400 the statement took longer than 4 s');
    expect((await Promise.all(others)).at(-1)).toBe(
      '429 too many of your statements wait; each caller runs one at a time',
    );
    await wide.close();
  });

  it('get an error when their turn does not come in time', async () => {
    const narrow = createStatementRunner({ url: database.url, connections: 1, waiting: 8, timeoutMs: 400 });
    const asked = ['a', 'b', 'c', 'd'].map((caller) => ask(narrow, caller, LONG));
    const [first, ...rest] = await Promise.all(asked);
    expect(first).toBe('400 the statement took longer than 0.4 s');
    expect(rest.at(-1)).toMatch(TURN);
    // On a busy machine the server may not have ended the last one yet.
    await expect.poll(() => ask(narrow, 'e')).toBe(1);
    await narrow.close();
  });

  it('get their answer at the deadline even if the server cannot cancel them, and hold one place until they end', async () => {
    const endless: number[] = [];
    const wide = createStatementRunner({
      url: database.url,
      connections: 2,
      timeoutMs: 300,
      onEndless: (pid) => endless.push(pid),
    });
    // Compares every element of one list with every element of the other, and does not notice a cancel meanwhile.
    const endlessly = 'select array_agg(n) && array_agg(-n) as a from generate_series(1, 25000) n';
    // Both are connected, so that the deadline does not include the time to connect.
    await expect.poll(() => Promise.all([ask(wide, 'greedy'), ask(wide, 'modest')])).toEqual([1, 1]);
    // Half a second after its time, the runner no longer waits for the server. Measured from then on, because the machine may have been late before.
    const deadline = systemClock.sleep(300 + 500).then(() => performance.now());
    expect(await ask(wide, 'greedy', endlessly)).toBe('400 the statement took longer than 0.3 s');
    expect(performance.now() - (await deadline)).toBeLessThan(700);
    expect(endless).toHaveLength(1);
    const isThere = async () =>
      (await database.sql`select from pg_stat_activity where pid = ${endless[0]!} and state = 'active'`).length === 1;
    expect(await isThere()).toBe(true);
    // Others get answers, and it gets no second place before its first is free.
    expect(await ask(wide, 'modest')).toBe(1);
    expect(await ask(wide, 'greedy')).toMatch(TURN);
    await expect.poll(isThere).toBe(false);
    await expect.poll(() => ask(wide, 'greedy')).toBe(1);
    expect(await Promise.all([ask(wide, 'greedy', 'select 2'), ask(wide, 'modest', 'select 3')])).toEqual([2, 3]);
    await wide.close();
  });
});

/** Attacks. The session behind them is a superuser's, so that only the runner can stop them. */
const ATTACKS: readonly (readonly [string, string])[] = [
  // Leaving the role.
  ['another role', 'set role none'],
  ['no role', 'reset role'],
  ['another session', 'set session authorization default'],
  ['a role by function', "select set_config('role', 'none', false)"],
  [
    'a role by function, then a statement',
    "select set_config('role', 'none', true), query_to_xml('select * from public.secret', true, false, '')",
  ],
  [
    'the same in an order that helps',
    "with a as materialized (select set_config('role', 'none', true)) select table_to_xml('public.secret', true, false, '') from a",
  ],
  ['a statement in a text', "select query_to_xml('select 1', true, false, '')"],
  ['a statement in a cursor', "select * from cursor_to_xml('x', 1, true, false, '')"],
  ['a statement in a search', "select * from ts_stat('select word from public.secret')"],
  ['a statement that rewrites a search', "select ts_rewrite('a'::tsquery, 'select word, word from public.secret')"],
  ['the whole database', "select database_to_xml(true, true, '') as a where set_config('role', 'none', true) = ''"],
  ['spelt with escapes', `select U&"set\\005fconfig"('role', 'none', true)`],
  ['quoted', `select pg_catalog."set_config"('role', 'none', true)`],
  ['called for its side effect', "select 1 as a where set_config('role', 'none', true) is not null"],
  ['called in an order', "select 1 as a order by set_config('role', 'none', true)"],
  [
    'called in a window',
    "select count(*) over (partition by set_config('role', 'none', true)) from generate_series(1, 2)",
  ],
  [
    'called in a join',
    "select a from generate_series(1, 2) a join generate_series(1, 2) b on set_config('role', 'none', true) = ''",
  ],
  ['called in a limit', "select 1 as a limit length(set_config('role', 'none', true))"],
  ['called in a filter', "select count(*) filter (where set_config('role', 'none', true) = '') as a"],
  ['called in a case', "select case when set_config('role', 'none', true) = '' then 1 end as a"],
  ['called for rows', "select * from set_config('role', 'none', true)"],
  ['called in values', "values (set_config('role', 'none', true))"],
  ['called in a sample', "select * from market.coin tablesample system (length(set_config('role', 'none', true)))"],
  ['called in an array', "select array(select set_config('role', 'none', true)) as a"],
  ['called in XML', "select xmlelement(name a, set_config('role', 'none', true)) as a"],
  [
    'called in a table of XML',
    "select * from xmltable('/a' passing set_config('role', 'none', true)::xml columns b text)",
  ],
  ['called as the end of another', "select 1 as a union select length(set_config('role', 'none', true))"],
  // What belongs to others.
  ['our own tables', 'select * from ops.account'],
  ['our own functions', 'select ops.admit_analyst()'],
  ['tables of others', 'select * from public.secret'],
  ['functions with more rights', 'select public.innocent()'],
  ['passwords', 'select rolpassword from pg_authid'],
  ['files', "select pg_read_file('/etc/passwd')"],
  ['folders', "select pg_ls_dir('.')"],
  ['large objects', "select lo_import('/etc/passwd')"],
  ['large objects by number', 'select lo_get(1)'],
  ['another server', "select * from dblink('host=127.0.0.1', 'select 1') as t(a int)"],
  // More than one statement.
  ['a second statement', 'select 1; drop table market.candle'],
  ['a second statement that is quiet', 'select 1; set role none'],
  ['out of the parentheses', 'select 1 as a) q; reset role; select (1'],
  ['out of the parentheses, and on', "select 1 as a) as q, lateral (select set_config('role', 'none', true)"],
  ['an end of the transaction', 'commit'],
  ['an end of the transaction, and a second statement', 'commit; drop table market.candle'],
  ['a comment that is left open', 'select 1 /*'],
  ['a text that is left open', "select 'x"],
  ['a dollar quote that is left open', 'select $$x'],
  ['what belongs to the view', 'select 1 as a with cascaded check option'],
  // Anything but reading.
  ['a row', "insert into market.coin (id) values ('x')"],
  ['a row in a clause', 'with gone as (delete from market.candle returning 1) select count(*) from gone'],
  ['a table', 'select 1 as a into temp t'],
  ['a table from a select', 'create table t as select 1'],
  ['locked rows', 'select * from market.coin for update'],
  ['code', 'do $$ begin perform pg_sleep(60); end $$'],
  ['a copy', "copy (select 1) to program 'id'"],
  ['a prepared statement', 'prepare x as select 1'],
  ['an explanation that runs it', 'explain analyze select pg_sleep(60)'],
  ['a call', 'call ops.nothing()'],
  ['a message', "select count(*) from pg_notify('x', 'y')"],
  ['a lock', 'select count(*) from pg_advisory_lock(1)'],
  ['a number used up', "select nextval('market.series_id_seq')"],
  ['somebody else’s session', 'select pg_terminate_backend(pid) from pg_stat_activity'],
  ['the settings', 'select pg_reload_conf()'],
  // Leaving the timeout.
  ['sleep', 'select count(*) from pg_sleep(60)'],
  ['sleep, told plainly', 'select pg_sleep(60)'],
  ['sleep for a span', "select pg_sleep_for('1 minute')"],
  ['no timeout', 'set statement_timeout = 0'],
  [
    'no timeout by function',
    "select set_config('statement_timeout', '0', false), count(*) from generate_series(1, 100000000000)",
  ],
];

describe('a statement that attacks', () => {
  it.each(ATTACKS)('cannot get %s', async (_what, statement) => {
    const said = await refusal(statement);
    expect(said).not.toMatch(/^answered|hunter2/);
    expect(said).toMatch(
      /may not be called|syntax error|permission denied|does not exist|multiple commands|read-only|unterminated|pseudo-type|CHECK OPTION|must not contain/i,
    );
  });

  it('leaves nothing behind: role, settings, tables, locks', async () => {
    const once = createStatementRunner({ url: database.url, connections: 1 });
    for (const [, statement] of ATTACKS)
      await once.run({ caller: 'somebody', statement, limit: 1 }).catch(() => undefined);
    const { rows } = await once.run({
      caller: 'somebody',
      statement:
        "select current_user::text as who, current_setting('statement_timeout') as most, current_setting('transaction_read_only') as reads",
      limit: 1,
    });
    expect(rows).toEqual([['chandler_sql', '5s', 'on']]);
    await once.close();
    const [left] = await database.sql`
      select (select count(*) from pg_class where relname like 'statement_of%') as views,
        -- Of this database: other files of the run have theirs on the same server.
        (select count(*) from pg_locks l join pg_database d on d.oid = l.database
          where locktype = 'advisory' and datname = current_database()) as locks, (select count(*) from market.candle) as candles`;
    expect(left).toEqual({ views: 0, locks: 0, candles: 10 });
  });

  it('may call no function that runs statements, waits or changes anything', async () => {
    const { rows } = await run(
      `select proname::text from pg_proc where pronamespace = 'pg_catalog'::regnamespace and provolatile <> 'v' and proname ~
         '^(set_|pg_sleep|lo_|pg_read|pg_write|pg_ls_|pg_advisory|pg_try|pg_notify|nextval|setval|query_to|cursor_to|ts_stat|dblink|pg_cancel|pg_terminate|pg_reload|pg_rotate|pg_logical|pg_create|pg_drop|pg_replication|pg_import|pg_promote|pg_switch)'
       order by 1`,
      500,
    );
    // These compute on values, or look up a number.
    const known = ['pg_replication_origin_oid', 'set_bit', 'set_byte', 'set_masklen'];
    expect([...new Set(rows.flat())].filter((name) => !known.includes(String(name)))).toEqual([]);
  });
});
