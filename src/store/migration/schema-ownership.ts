/** Checks who owns the schemas `market` and `ops`, and what this user may do with them, before anything is changed. */
import type { SqlOrTransaction } from '../connection/connect.ts';
import { StoreError } from '../connection/store-error.ts';

type SchemaFound = {
  readonly owner: string;
  /** True if this user owns it, or is a member of the role that owns it. */
  readonly owned: boolean;
  readonly usable: boolean;
  /** True if this user may create objects in it. */
  readonly creatable: boolean;
  /** True if it contains something that none of our migrations made. */
  readonly foreign: boolean;
};

export type SchemaOwnership = {
  readonly user: string;
  readonly database: string;
  /** The encoding of the database, like `UTF8`. */
  readonly encoding: string;
  /** True if this user may create schemas. */
  readonly mayCreate: boolean;
  /** True if the tables of Chandler exist, of any version. */
  readonly ours: boolean;
  readonly market: SchemaFound | null;
  readonly ops: SchemaFound | null;
};

type Found = SchemaFound & { readonly name: 'market' | 'ops'; readonly relations: readonly string[] };

/** Reads only the system catalogue, which every user may read. */
export async function readOwnership(sql: SqlOrTransaction): Promise<SchemaOwnership> {
  const [who] = await sql<Pick<SchemaOwnership, 'user' | 'database' | 'encoding' | 'mayCreate'>[]>`
    select current_user as user, current_database() as database, current_setting('server_encoding') as encoding,
      has_database_privilege(current_database(), 'create') as may_create`;
  const schemas = await sql<Found[]>`
    select n.nspname as name, pg_get_userbyid(n.nspowner) as owner, pg_has_role(n.nspowner, 'usage') as owned,
      has_schema_privilege(n.oid, 'usage') as usable, has_schema_privilege(n.oid, 'create') as creatable,
      array(select c.relname::text from pg_class c where c.relnamespace = n.oid) as relations,
      exists (select from pg_class c where c.relnamespace = n.oid and c.relname !~ '^(migration|lock)(_|$)')
        or exists (select from pg_proc p where p.pronamespace = n.oid)
        or exists (select from pg_type t where t.typnamespace = n.oid and t.typrelid = 0 and t.typelem = 0) as foreign
    from pg_namespace n where n.nspname in ('market', 'ops')`;
  const find = (name: string) => schemas.find((schema) => schema.name === name) ?? null;
  const has = (name: string, relation: string) => find(name)?.relations.includes(relation) === true;
  const ours = has('ops', 'migration') && has('market', 'series');
  const settle = (found: Found | null): SchemaFound | null => found && { ...found, foreign: found.foreign && !ours };
  return {
    ...who!,
    ours,
    market: settle(find('market')),
    ops: settle(find('ops')),
  };
}

/** @throws StoreError when a schema `market` or `ops` exists that is not Chandler's. */
export function refuseForeign({ market, ops, database }: SchemaOwnership): void {
  const names = [market?.foreign && 'market', ops?.foreign && 'ops'].filter((name) => typeof name === 'string');
  if (names.length === 0) return;
  const what =
    names.length === 1
      ? `a schema ${names[0]} that is not Chandler's`
      : "schemas market and ops that are not Chandler's";
  throw new StoreError(
    `the database '${database}' has ${what}, and nothing in it was changed`,
    'give Chandler a database of its own in DATABASE_URL; make one with: createdb chandler',
  );
}

/** @throws StoreError when this user lacks a right that every command needs. */
export function refuseUnusable({ user, database, market, ops }: SchemaOwnership): void {
  const missing = [market?.usable === false && 'market', ops?.usable === false && 'ops'].filter(
    (name) => typeof name === 'string',
  );
  if (missing.length === 0) return;
  const right = `user '${user}' of DATABASE_URL lacks the right usage on schema ${missing.join(' and ')} in database '${database}'`;
  const reads = missing.includes('market') ? '' : 'query the schema market with psql or any SQL client, or ';
  throw new StoreError(right, `${reads}give DATABASE_URL the user '${(ops ?? market)!.owner}', who owns it`);
}

/** Other encodings lack characters of the names of coins. A database of `SQL_ASCII` stores every byte. */
const ENCODINGS: readonly string[] = ['UTF8', 'SQL_ASCII'];

/** @throws StoreError when a database without a warehouse cannot store every text. */
export function refuseEncoding({ ours, database, encoding }: SchemaOwnership): void {
  if (ours || ENCODINGS.includes(encoding)) return;
  throw new StoreError(
    `the database '${database}' has the encoding ${encoding}, which lacks characters that Chandler stores`,
    'make another one and name it in DATABASE_URL: createdb --encoding=UTF8 --template=template0 --locale=C chandler',
  );
}

/** @throws StoreError when this user may not change the schema. */
export function refuseChange({ user, database, mayCreate, market, ops }: SchemaOwnership): void {
  for (const [name, found] of Object.entries({ market, ops })) {
    if (found === null || (found.owned && found.creatable)) continue;
    throw new StoreError(
      `the schema ${name} of database '${database}' belongs to '${found.owner}', and user '${user}' of DATABASE_URL may not change it`,
      `run chandler migrate as '${found.owner}'`,
    );
  }
  if (mayCreate) return;
  throw new StoreError(
    `user '${user}' of DATABASE_URL lacks the right create on database '${database}'`,
    `let its owner run: grant create on database "${database}" to "${user}"`,
  );
}
