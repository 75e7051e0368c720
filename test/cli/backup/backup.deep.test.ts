/** `chandler restore` for rarer backups: of an older version, with roles of other users, and truncated. */
import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../../support/database.ts';
import {
  backup,
  backups,
  client,
  dumpByHand,
  files,
  folder,
  isEmpty,
  original,
  restore,
  run,
  schemaOf,
  target,
  useDatabases,
} from './backup.ts';

useDatabases();

describe.skipIf(client === null)('what is restored', () => {
  test('is migrated to the newest schema when the backup is of an older version', async () => {
    const [old, ready] = await Promise.all([createEmptyDatabase(), createTestDatabase()]);
    try {
      await migrateUpTo(old, '0012');
      const archive = path.join(folder, 'old.dump');
      dumpByHand(old, archive);
      const { code, out, err } = await run(target, ['restore', archive]);
      expect({ code, err }).toEqual({ code: 0, err: '' });
      expect(out).toMatch(/applied \d+ migrations that the backup lacked: 0013_rates, 0014_prices/);
      expect(out).toContain('There is no attestation beside the backup');
      expect(schemaOf(target)).toBe(schemaOf(ready));
    } finally {
      await Promise.all([old.drop(), ready.drop()]);
    }
  });

  test('has the grants to roles of other users, which restore makes first and which cannot log in', async () => {
    const role = `reader_${path.basename(folder).slice(-6).toLowerCase()}`;
    await original.sql.unsafe(`create role ${role} login password 'x'; grant select on market.series to ${role}`);
    expect((await backup()).code).toBe(0);
    // As on another server: the role does not exist there.
    await original.sql.unsafe(`drop owned by ${role}; drop role ${role}`);
    const mover = `mover_${path.basename(folder).slice(-6).toLowerCase()}`;
    const { pathname } = new URL(target.url);
    await target.sql.unsafe(
      `create role ${mover} login password 'sesame-open'; alter database ${pathname.slice(1)} owner to ${mover}`,
    );
    try {
      const url = Object.assign(new URL(target.url), { username: mover, password: 'sesame-open' }).href;
      const refused = await run({ ...target, url }, ['restore', backups()]);
      expect(refused.code).toBe(2);
      expect(refused.err).toContain(`may not make roles; let an administrator run: create role "${role}" nologin;`);
      expect(await isEmpty(target)).toBe(true);
      const { code, out } = await restore();
      expect(code).toBe(0);
      expect(out).toContain(`made 1 role without a login: ${role}`);
      const [made] = await target.sql`
        select rolcanlogin, has_table_privilege(${role}, 'market.series', 'select') as reads from pg_roles where rolname = ${role}`;
      expect(made).toEqual({ rolcanlogin: false, reads: true });
    } finally {
      await target.sql.unsafe(
        `drop owned by ${role}; drop role ${role}; reassign owned by ${mover} to current_user; drop role ${mover}`,
      );
    }
  });
});

describe.skipIf(client === null)('an incomplete backup', () => {
  test('is not restored when its copy was truncated, and the complete one is then restored into the same database', async () => {
    expect((await backup()).code).toBe(0);
    const whole = path.join(backups(), files()[0]!);
    const cut = path.join(folder, 'cut.dump');
    for (const part of [0.9, 0.2]) {
      writeFileSync(cut, readFileSync(whole));
      truncateSync(cut, Math.floor(statSync(whole).size * part));
      const { code, err } = await run(target, ['restore', cut]);
      expect(code).toBe(1);
      expect(err).toMatch(/is not a backup, or not a complete one|the backup is cut off or damaged/);
      expect(await isEmpty(target)).toBe(true);
    }
    writeFileSync(cut, 'create table x ()');
    expect(await run(target, ['restore', cut])).toMatchObject({
      code: 1,
      err: expect.stringMatching(/is not a backup, or not a complete one/),
    });
    expect(await restore()).toMatchObject({ code: 0 });
  });
});

/** The database as a version of Chandler left it that knew no later migration. */
async function migrateUpTo({ sql }: TestDatabase, last: string): Promise<void> {
  const root = path.join(import.meta.dirname, '../../../migrations');
  const { entries } = JSON.parse(readFileSync(path.join(root, 'meta/_journal.json'), 'utf8')) as {
    entries: { tag: string; when: number }[];
  };
  await sql.unsafe(`create schema ops; create table ops.migration (id serial primary key, hash text not null, created_at bigint);
    alter table ops.migration add column name text`);
  for (const { tag, when } of entries.filter(({ tag }) => tag.slice(0, 4) <= last)) {
    for (const statement of readFileSync(path.join(root, `${tag}.sql`), 'utf8').split('--> statement-breakpoint'))
      await sql.unsafe(statement);
    await sql`insert into ops.migration (hash, created_at, name) values (${tag}, ${when}, ${tag})`;
  }
}
