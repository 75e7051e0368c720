import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { coinDetailsSchema } from '../../../src/contract/record/catalogue.ts';
import { writeCoinEvents } from '../../../src/store/catalogue/catalogue-lists.ts';
import { writeCoinDetail } from '../../../src/store/catalogue/coin-detail.ts';
import { coinOfContract, writeContracts } from '../../../src/store/catalogue/contract.ts';
import {
  markDocumentsGone,
  readDocument,
  readDocuments,
  writeDocuments,
} from '../../../src/store/catalogue/document.ts';
import { writePerson } from '../../../src/store/catalogue/person.ts';
import { writeTags } from '../../../src/store/catalogue/tag.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());
afterEach(
  () => database.sql`truncate market.document, market.document_revision, market.coin_detail, market.coin_link, market.position,
    market.coin_tag, market.tag, market.person, market.contract, market.coin_event`,
);

const at = (day: number) => Date.UTC(2026, 0, day);
const keep = (text: string, day: number, fingerprint = text, isTruncated = false) =>
  writeDocuments(database.sql, {
    kind: 'coin',
    documents: [{ id: 'a-a', text, fingerprint }],
    at: at(day),
    isTruncated,
  });
const revisions = async () => [
  ...(await database.sql<{ received: string; from: number; to: number }[]>`
    select received::text, valid_from as "from", valid_to as "to" from market.document_revision order by valid_from`),
];

describe('a stored document', () => {
  test('is read back as it arrived: white space, order of keys, repeated keys and number texts', async () => {
    const text =
      '{"b": 1.50, "a":1e-07,"b":9.51111762014774e-06,"n":12345678901234567890, "e":"\\u00e9\\ud83d\\ude80\\\\u0000"}';
    await keep(text, 1);
    expect((await readDocument(database.sql, 'coin', 'a-a'))!.text).toBe(text);
    expect(await readDocument(database.sql, 'coin', 'b-b')).toBeNull();
  });

  test('contains nothing that Postgres could not read later', async () => {
    await keep('{"description":"a\\u0000b\\ud800c\\udc00"}', 1);
    const [row] = await database.sql`select received->>'description' as d from market.document`;
    expect(row!.d).toBe('a\ufffdb\ufffdc\ufffd');
  });

  test('keeps its earlier contents, one version for each real change', async () => {
    await keep('{"name":"A","rank":1}', 1, 'A');
    await keep('{"name":"A","rank":2}', 2, 'A');
    expect(await revisions()).toEqual([]);
    await keep('{"name":"B","rank":2}', 3, 'B');
    await keep('{"name":"B","rank":2}', 3, 'B');
    expect(await revisions()).toEqual([{ received: '{"name":"A","rank":2}', from: at(1), to: at(3) }]);
  });

  test('has the contents of the younger of two answers, in whichever order they arrive', async () => {
    expect([...(await keep('{"name":"B"}', 5))]).toEqual(['a-a']);
    expect([...(await keep('{"name":"A"}', 4))]).toEqual([]);
    expect(await readDocument(database.sql, 'coin', 'a-a')).toMatchObject({ text: '{"name":"B"}', asOf: at(5) });
    expect(await revisions()).toEqual([]);
  });

  test('is whole as soon as a whole answer arrives, even if a truncated one is younger; its versions follow each other', async () => {
    await keep('["A"]', 1);
    await keep('["B"]', 5, 'B', true);
    expect([...(await keep('["B","C"]', 4))]).toEqual(['a-a']);
    expect(await readDocument(database.sql, 'coin', 'a-a')).toMatchObject({
      text: '["B","C"]',
      asOf: at(4),
      isTruncated: false,
    });
    expect([...(await keep('["B"]', 3, 'B', true))]).toEqual([]);
    await keep('["D"]', 6);
    expect(await revisions()).toEqual([
      { received: '["A"]', from: at(1), to: at(5) },
      { received: '["B","C"]', from: at(5), to: at(6) },
    ]);
  });

  test('stays when the upstream no longer knows it, and is known again when the upstream does', async () => {
    await keep('{"name":"A"}', 1);
    await markDocumentsGone(database.sql, { kind: 'coin', ids: ['a-a', 'b-b'], at: at(2) });
    await markDocumentsGone(database.sql, { kind: 'coin', ids: ['a-a'], at: at(3) });
    expect(await readDocument(database.sql, 'coin', 'a-a')).toMatchObject({ text: '{"name":"A"}', goneAt: at(2) });
    const [catalogue] = await database.sql`select kind, known, gone from market.catalogue`;
    expect(catalogue).toEqual({ kind: 'coin', known: 0, gone: 1 });
    await keep('{"name":"A"}', 4);
    expect(await readDocument(database.sql, 'coin', 'a-a')).toMatchObject({ goneAt: null });
  });
});

/** Rows of a versioned table: those that hold now and those that ended. */
const versions = async (table: string, columns: string) =>
  (
    await database.sql.unsafe(`select ${columns}, extract(day from valid_from)::int as since,
      extract(day from valid_to)::int as until from market.${table} order by ${columns}, valid_from`)
  ).map((row) => Object.values(row).join(' '));

describe('the details of a coin', () => {
  const details = (change: object = {}) =>
    coinDetailsSchema.parse({
      id: 'a-a',
      name: 'A',
      symbol: 'AA',
      started_at: '2015-07-30T00:00:00Z',
      message: '',
      team: [
        { id: 'ann', name: 'Ann', position: 'Founder' },
        { id: 'bob', name: 'Bob', position: 'Developer' },
      ],
      tags: [{ id: 'x', name: 'X', coin_counter: 1, ico_counter: 0 }],
      links: { website: ['https://a.test'], reddit: null },
      links_extended: [{ url: 'https://blog.a.test', type: 'blog' }],
      whitepaper: { link: 'https://a.test/paper', thumbnail: null },
      contracts: [{ contract: '0xA', platform: 'eth-ethereum', type: 'ERC20' }],
      ...change,
    });

  test('are stored as one row, links and a team; changed ones end and are kept', async () => {
    const { sql } = database;
    await writeCoinDetail(sql, details(), at(1));
    await writeCoinDetail(sql, details(), at(2));
    await writeCoinDetail(
      sql,
      details({
        message: 'Moved',
        team: [{ id: 'ann', name: 'Ann', position: 'Adviser' }],
        links: { website: ['https://a.test'] },
        links_extended: null,
      }),
      at(3),
    );
    const [row] = await sql`select * from market.coin_detail`;
    expect(row).toMatchObject({
      coinId: 'a-a',
      asOf: at(3),
      message: 'Moved',
      startedAt: Date.parse('2015-07-30T00:00:00Z'),
      platformId: 'eth-ethereum',
      contract: '0xA',
      whitepaperUrl: 'https://a.test/paper',
      openSource: null,
    });
    expect(await versions('position', 'person_id, position')).toEqual([
      'ann Adviser 3 ',
      'ann Founder 1 3',
      'bob Developer 1 3',
    ]);
    expect(await versions('coin_link', 'kind, url')).toEqual([
      'blog https://blog.a.test 1 3',
      'website https://a.test 1 ',
    ]);
  });

  test('do not overwrite what the answers about tags and people have told', async () => {
    const { sql } = database;
    await writeTags(sql, { rows: [{ id: 'x', name: 'X', coins: ['b-b'] }], at: at(1), isWhole: true });
    await writeTags(sql, { rows: [{ id: 'x', name: 'X', coins: ['a-a'] }], at: at(2), isWhole: true });
    await writeTags(sql, { rows: [{ id: 'x', name: 'X', coins: [] }], at: at(3), isWhole: true });
    await writeCoinDetail(sql, details(), at(4));
    expect(await versions('coin_tag', 'coin_id, tag_id')).toEqual(['a-a x 2 3', 'b-b x 1 2']);
    await writePerson(
      sql,
      {
        id: 'bob',
        name: 'Bob',
        positions: [
          { coin_id: 'a-a', position: 'Developer' },
          { coin_id: 'c-c', position: null },
        ],
      },
      at(5),
    );
    expect(await versions('position', 'coin_id, person_id, position')).toEqual([
      'a-a ann Founder 4 ',
      'a-a bob Developer 4 ',
      'c-c bob  5 ',
    ]);
  });
});

test('tags that the list no longer has are marked gone and come back later; their documents follow the order of the list', async () => {
  const { sql } = database;
  const list = async (ids: string[], day: number) => {
    const tags = ids.map((id) => ({ id, name: id.toUpperCase() }));
    const documents = tags.map((tag) => ({ id: tag.id, text: JSON.stringify(tag), fingerprint: tag.id }));
    await writeDocuments(sql, { kind: 'tag', documents, at: at(day) });
    await writeTags(sql, { rows: tags, at: at(day), isWhole: true });
    return (await readDocuments(sql, 'tag')).map(({ id }) => id);
  };
  expect(await list(['z', 'a', 'm'], 1)).toEqual(['z', 'a', 'm']);
  expect(await list(['m', 'a'], 2)).toEqual(['m', 'a']);
  const [gone] = await sql`select id, gone_at, last_seen_at from market.tag where gone_at is not null`;
  expect(gone).toEqual({ id: 'z', goneAt: at(2), lastSeenAt: at(1) });
  expect(await list(['m', 'a', 'z'], 3)).toEqual(['m', 'a', 'z']);
});

test('a contract with a hexadecimal address is found in upper and lower case, and has a history', async () => {
  const { sql } = database;
  const write = (contracts: { address: string; id: string; active?: boolean }[], day: number, isWhole = true) =>
    writeContracts(sql, 'eth-ethereum', { rows: contracts, at: at(day), isWhole });
  await write(
    [
      { address: '0xAbC1', id: 'a-a', active: true },
      { address: 'Sol1', id: 'b-b' },
    ],
    1,
  );
  await write(
    [
      { address: '0xAbC1', id: 'a-a', active: false },
      { address: 'Sol1', id: 'b-b' },
    ],
    2,
  );
  // The beginning of a list does not prove that a later entry is missing.
  await write([{ address: '0xAbC1', id: 'a-a', active: false }], 3, false);
  expect(await versions('contract', 'address, coin_id, is_active')).toEqual([
    '0xAbC1 a-a false 2 ',
    '0xAbC1 a-a true 1 2',
    'Sol1 b-b  1 ',
  ]);
  const find = (address: string) => coinOfContract(sql, { platformId: 'eth-ethereum', address });
  expect([await find('0XABC1'), await find('Sol1'), await find('sol1'), await find('0x')]).toEqual([
    'a-a',
    'b-b',
    null,
    null,
  ]);
  await write([], 4);
  expect(await find('0xabc1')).toBeNull();
});

test('an event that the list no longer has is kept', async () => {
  const { sql } = database;
  const event = { id: 'e1', date: '2026-05-01T00:00:00Z', date_to: null, name: 'Fork\0', link: '' };
  await writeCoinEvents(sql, 'a-a', { rows: [event], at: at(1), isWhole: true });
  await writeCoinEvents(sql, 'b-b', { rows: [], at: at(2), isWhole: true });
  await writeCoinEvents(sql, 'a-a', { rows: [], at: at(3), isWhole: true });
  const rows = await sql`select id, name, date, link, gone_at from market.coin_event`;
  expect([...rows]).toEqual([
    { id: 'e1', name: 'Fork\ufffd', date: Date.parse('2026-05-01T00:00:00Z'), link: null, goneAt: at(3) },
  ]);
});
