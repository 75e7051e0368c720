import { randomUUID } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { type Database, openDatabase } from '../../../src/store/connection/connect.ts';
import { checkSchema, isUnmigrated, migrate } from '../../../src/store/migration/migrate.ts';
import { ensurePartitions } from '../../../src/store/upkeep/partition.ts';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase | undefined;
afterEach(async () => {
  await database?.drop();
  database = undefined;
});

describe('migrate', () => {
  test('creates everything in an empty database, once', async () => {
    database = await createEmptyDatabase();
    const applied = await migrate(database);
    expect(applied[0]).toBe('0000_coins_and_candles');
    expect(await migrate(database)).toEqual([]);
    await checkSchema(database);
  });

  test('0040 ends the holds of kinds of the catalogue, which one refused item could cause, and no other claim', async () => {
    database = await createTestDatabase();
    const { sql } = database;
    const claims = ['catalogue refusal', 'short list'];
    await sql`delete from ops.migration where name >= '0040'`;
    await sql`
      insert into ops.second_opinion (claim, key, answers, requested_at, retry_at)
      select claim, 'anonymous@host free people', 3, now(), now() + interval '30 days' from unnest(${claims}::text[]) claim`;
    expect(await migrate(database)).toContain('0040_grid_edges');
    expect(await sql`select claim from ops.second_opinion`).toEqual([{ claim: 'short list' }]);
  });

  test('may take longer than the idle limit of a transaction', async () => {
    database = await createEmptyDatabase();
    // One statement of a migration takes a second. Meanwhile the transaction that holds the migration lock is idle.
    await database.sql.unsafe(`
      create function public.take_long() returns event_trigger language plpgsql as 'begin perform pg_sleep(1); end';
      create event trigger take_long on ddl_command_end when tag in ('CREATE TYPE') execute function public.take_long()`);
    const options = '-c idle_in_transaction_session_timeout=500ms';
    const impatient = await openDatabase({ url: `${database.url}?options=${encodeURIComponent(options)}`, max: 2 });
    try {
      expect((await migrate(impatient)).length).toBeGreaterThan(0);
    } finally {
      await impatient.close();
    }
  });

  test('may run in several processes at once: one of them applies each migration', async () => {
    database = await createEmptyDatabase();
    const { url } = database;
    const others = await Promise.all([1, 2, 3, 4].map(() => openDatabase({ url, max: 2 })));
    try {
      const applied = await Promise.all(others.map(migrate));
      const names = applied.flat();
      expect(new Set(names).size).toBe(names.length);
      expect(applied.filter((list) => list.length > 0)).toHaveLength(1);
      const [row] = await database.sql<{ n: number }[]>`select count(*) as n from ops.migration`;
      expect(row?.n).toBe(names.length);
    } finally {
      await Promise.all(others.map((other) => other.close()));
    }
  });

  test('killed between the migrations and the grants: the state says so, and the next run finishes it', async () => {
    database = await createEmptyDatabase();
    const { sql } = database;
    await sql.unsafe(`
      create function public.cut_short() returns trigger language plpgsql as 'begin raise exception ''killed''; end';
      create function public.lay_trap() returns event_trigger language plpgsql as $$ begin
        if to_regclass('ops.migration') is not null and not exists (select from pg_trigger where tgname = 'trap') then
          create trigger trap before update on ops.migration execute function public.cut_short();
        end if;
      end $$;
      create event trigger lay_trap on ddl_command_end when tag in ('CREATE TABLE') execute function public.lay_trap()`);
    await expect(migrate(database)).rejects.toThrow('killed');
    await sql.unsafe('drop event trigger lay_trap; drop trigger trap on ops.migration');
    // A command that creates the schema in an empty database also finishes this one.
    expect(await isUnmigrated(database)).toBe(true);
    await expect(checkSchema(database)).rejects.toThrow(
      'the last migration is still under way, or was cut short; wait a moment, or run: chandler migrate',
    );
    expect(await migrate(database)).toEqual([]);
    await checkSchema(database);
    const [row] = await sql<
      { may: boolean }[]
    >`select has_table_privilege('analyst', 'market.candles', 'select') as may`;
    expect(row!.may).toBe(true);
  });

  test('ignores that another process made the same table a moment earlier', async () => {
    database = await createEmptyDatabase();
    const { sql } = database;
    await sql.unsafe(`
      create sequence collisions;
      create function collide() returns event_trigger language plpgsql as $$ begin
        if tg_tag = 'CREATE TABLE' and nextval('collisions') = 2 then
          raise exception using errcode = 'duplicate_object', message = 'type "lock" already exists';
        end if;
      end $$;
      create event trigger collide on ddl_command_start execute function collide()`);
    expect((await migrate(database))[0]).toBe('0000_coins_and_candles');
    await checkSchema(database);
  });

  test('refuses a database that a newer build has migrated, and names the migration', async () => {
    database = await createTestDatabase();
    await database.sql`insert into ops.migration (hash, created_at, name) values ('x', 9999999999999, '0042_future')`;
    const message = 'this database was migrated by a newer chandler (migration 0042_future); upgrade chandler';
    await expect(checkSchema(database)).rejects.toThrow(message);
    await expect(migrate(database)).rejects.toThrow(message);
  });

  test('distinguishes an empty, a half-migrated and a ready database', async () => {
    database = await createEmptyDatabase();
    await expect(checkSchema(database)).rejects.toThrow('this database is empty; run: chandler migrate');
    await migrate(database);
    await database.sql`delete from ops.migration where name = (select max(name) from ops.migration)`;
    await expect(checkSchema(database)).rejects.toThrow(/lacks migration \d{4}_\w+; run: chandler migrate/);
  });

  test('gives every table, view and column a comment, also in partitions made later', async () => {
    database = await createTestDatabase();
    await ensurePartitions(database.sql, '1h', { from: Date.UTC(2024, 0, 1), to: Date.UTC(2024, 5, 1) });
    const bare = await database.sql<{ name: string }[]>`
      select c.oid::regclass::text || coalesce('.' || a.attname, '') as name
      from pg_class c
      join pg_namespace n on n.oid = c.relnamespace and n.nspname in ('market', 'ops')
      left join lateral (
        select null::name as attname, 0::int2 as attnum
        union all
        select attname, attnum from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped
          and not c.relispartition
      ) a on true
      where c.relkind in ('r', 'v', 'p') and obj_description(c.oid, 'pg_class') is null and a.attnum = 0
        or c.relkind in ('r', 'v', 'p') and a.attnum > 0 and col_description(c.oid, a.attnum) is null`;
    expect(bare.map((row) => row.name)).toEqual([]);
  });

  test('names a migration that Postgres rejects, with the reason, and changes nothing', async () => {
    database = await createTestDatabase({ max: 2 });
    const { sql } = database;
    await sql`delete from ops.migration`;
    await expect(migrate(database)).rejects.toThrow(
      'the migration 0000_coins_and_candles fails, so nothing was changed: type "candle_interval" already exists; remove what stands in',
    );
    expect(await sql`select from ops.migration`).toHaveLength(0);
  });

  test('lets the role analyst read market and nothing else', async () => {
    database = await createTestDatabase({ max: 1 });
    const { sql } = database;
    await sql`set role analyst`;
    await sql`select * from market.candles limit 1`;
    await sql`select * from market.coverage`;
    await sql`select * from market.gaps`;
    await sql`select * from market.freshness`;
    await expect(sql`select * from ops.fetch`).rejects.toThrow('permission denied for schema ops');
    await expect(sql`insert into market.coin_change select 'x', now(), 'name', '', ''`).rejects.toThrow(
      'permission denied',
    );
    await expect(sql`create table market.mine (x int)`).rejects.toThrow('permission denied');
  });
});

describe('in a database that is not ours, or that the user may not change,', () => {
  /** Runs the work in the same database as a user that may only connect. */
  async function asNobody(work: (nobody: Database, name: string) => Promise<void>): Promise<void> {
    const name = `nobody_${randomUUID().slice(0, 8)}`;
    const { sql, url } = database!;
    await sql.unsafe(`create role ${name} login password 'guess'`);
    const theirs = new URL(url);
    theirs.username = name;
    theirs.password = 'guess';
    const nobody = await openDatabase({ url: theirs.href, max: 2 });
    try {
      await work(nobody, name);
    } finally {
      await nobody.close();
      await sql.unsafe(`drop owned by ${name}; drop role ${name}`);
    }
  }
  const schemas = async () =>
    (await database!.sql<{ name: string }[]>`select nspname as name from pg_namespace order by 1`).map(
      (row) => row.name,
    );

  test.each([
    ['market', 'create schema market; create table market.stall (id int)'],
    ['market', 'create schema market; create table market.series (id int)'],
    ['market', "create schema market; create type market.kind as enum ('a')"],
    ['ops', 'create schema ops; create table ops.pager (id int)'],
    ['ops', 'create schema ops; create table ops.migration (id int); create table ops.pager (id int)'],
  ])('a foreign schema %s is left alone, and the error names it: %s', async (name, make) => {
    database = await createEmptyDatabase();
    await database.sql.unsafe(make);
    const before = await schemas();
    const message = new RegExp(
      `^the database '.*' has a schema ${name} that is not Chandler's, and nothing in it was changed; give Chandler a database of its own in DATABASE_URL`,
    );
    await expect(migrate(database)).rejects.toThrow(message);
    await expect(checkSchema(database)).rejects.toThrow(message);
    await expect(isUnmigrated(database)).rejects.toThrow(message);
    expect(await schemas()).toEqual(before);
  });

  test('empty schemas with our names, and the remains of a failed migration, do not prevent a migration', async () => {
    database = await createEmptyDatabase();
    await database.sql`create schema market`;
    await database.sql.unsafe(
      'create schema ops; create table ops.migration (id serial primary key, hash text not null, created_at bigint)',
    );
    expect(await isUnmigrated(database)).toBe(true);
    expect((await migrate(database)).length).toBeGreaterThan(0);
    expect(await isUnmigrated(database)).toBe(false);
  });

  test('the error tells a user who may not create schemas which right is missing, and nothing is made', async () => {
    database = await createEmptyDatabase();
    const before = await schemas();
    await asNobody(async (nobody, name) => {
      await expect(migrate(nobody)).rejects.toThrow(
        new RegExp(
          `^user '${name}' of DATABASE_URL lacks the right create on database '.*'; let its owner run: grant create on database ".*" to "${name}"$`,
        ),
      );
    });
    expect(await schemas()).toEqual(before);
  });

  test('a user who does not own the schemas may not migrate, and needs no rights when nothing is to do', async () => {
    database = await createTestDatabase();
    const { sql } = database;
    await asNobody(async (nobody, name) => {
      await sql.unsafe(`grant usage on schema market, ops to ${name}; grant select on ops.migration to ${name}`);
      expect(await migrate(nobody)).toEqual([]);
      await checkSchema(nobody);
      await sql`delete from ops.migration where name = (select max(name) from ops.migration)`;
      await expect(migrate(nobody)).rejects.toThrow(
        new RegExp(
          `^the schema market of database '.*' belongs to '.*', and user '${name}' of DATABASE_URL may not change it; run chandler migrate as '.*'$`,
        ),
      );
    });
  });

  test('the error tells an analyst which right is missing, and what to do instead', async () => {
    database = await createTestDatabase();
    await asNobody(async (nobody, name) => {
      await expect(checkSchema(nobody)).rejects.toThrow(
        new RegExp(`^user '${name}' of DATABASE_URL lacks the right usage on schema market and ops in database`),
      );
      await database!.sql.unsafe(`grant analyst to ${name}`);
      const message = new RegExp(
        `^user '${name}' of DATABASE_URL lacks the right usage on schema ops in database '.*'; query the schema market with psql or any SQL client, or give DATABASE_URL the user '.*', who owns it$`,
      );
      await expect(checkSchema(nobody)).rejects.toThrow(message);
      await expect(migrate(nobody)).rejects.toThrow(message);
      expect(await nobody.sql`select from market.candles`).toHaveLength(0);
    });
  });
});
