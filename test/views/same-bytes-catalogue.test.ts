/** The warehouse answers the catalogue byte for byte as the upstream did, once the schedules have fetched it. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Handler } from '../../src/contract/interface/handler.ts';
import { DAY } from '../../src/core/interval.ts';
import { createService } from '../../src/service/service.ts';
import { wantSeries } from '../../src/store/candle/series.ts';
import { CATALOGUE_KINDS } from '../../src/store/catalogue/catalogue-item.ts';
import { createWarehouse } from '../../src/views/market/warehouse.ts';
import { openAccess } from '../service/conformance.ts';
import { runSchedules } from '../support/scheduled.ts';
import { createWorld, type World } from '../support/world.ts';

const NOW = Date.UTC(2025, 8, 25, 16, 41, 20);

/** By path, in the shapes of real answers: nulls, empty texts, undocumented keys, keys in the upstream's own order. */
const ANSWERS: Readonly<Record<string, string>> = {
  '/coins':
    '[{"id":"eth-ethereum","name":"Ethereum","symbol":"ETH","rank":2,"is_new":false,"is_active":true,"type":"coin"},' +
    '{"id":"old-gone","name":"Gone","symbol":"OLD","rank":0,"is_new":false,"is_active":false,"type":"coin"}]',
  '/tickers':
    '[{"id":"eth-ethereum","name":"Ethereum","symbol":"ETH","rank":2,"total_supply":1,"max_supply":0,"beta_value":1,' +
    '"first_data_at":"2015-08-07T00:00:00Z","last_updated":"2025-09-25T16:41:00Z","quotes":{"USD":{"price":4000}}}]',
  '/exchanges':
    // As documented, key by key: a database would sort `twitter` before `website`.
    '[{"id":"bitz","name":"Bitz","type":["cex","spot"],"active":true,"website_status":true,"api_status":true,"description":null,' +
    '"message":null,"links":{"website":["https://bitz.example/"],"twitter":["https://x.example/bitz"],"blog":[],"Chat":[]},' +
    '"markets_data_fetched":true,"adjusted_rank":2,"reported_rank":1,"currencies":340,"markets":800,' +
    '"fiats":[{"name":"US Dollars","symbol":"USD"},{"name":"Euro","symbol":"EUR"}],"quotes":{"USD":{' +
    '"reported_volume_24h":1846000000.123,"adjusted_volume_24h":1806000000.5,"reported_volume_7d":13000000000,' +
    '"adjusted_volume_7d":12900000000,"reported_volume_30d":54000000000,"adjusted_volume_30d":53000000000}},' +
    '"last_updated":"2025-09-25T16:40:00Z"},' +
    '{"id":"odd","name":"Odd \\u0000 \\ud800","type":[],"active":false,"website_status":false,"api_status":false,' +
    '"description":"","message":"","links":{"website":["https://odd.example/\\udfff"]},"markets_data_fetched":false,' +
    '"adjusted_rank":null,"reported_rank":null,"currencies":0,"markets":0,"fiats":[{"symbol":"USD","name":"US Dollars"}],' +
    '"quotes":{"USD":{"reported_volume_24h":0,"adjusted_volume_24h":0,"reported_volume_7d":0,"adjusted_volume_7d":0,' +
    '"reported_volume_30d":0,"adjusted_volume_30d":0}},"last_updated":"2025-09-25T16:40:00Z"}]',
  '/coins/eth-ethereum':
    '{"id":"eth-ethereum","name":"Ethereum","symbol":"ETH","rank":2,"is_new":false,"is_active":true,"type":"coin",' +
    '"logo":"https://static.example/eth.png","tags":[{"id":"smart-contracts","name":"Smart Contracts","coin_counter":428,' +
    '"ico_counter":305}],"team":[{"id":"v-b","name":"V B","position":"Author"},{"id":"prima","name":"prima","position":"11"}],' +
    '"description":"A platform. \\"Money\\", <b>code</b> & ünïcode ₿","message":"","open_source":true,"started_at":"2015-07-30T00:00:00Z",' +
    '"development_status":"Working product","hardware_wallet":true,"proof_type":"Proof of Stake",' +
    '"org_structure":"Semi-centralized","hash_algorithm":"Ethash","links":{"explorer":["https://a.example/"],"facebook":[],' +
    '"reddit":["https://b.example/"],"source_code":[],"website":["https://c.example/"],"youtube":[]},"links_extended":[' +
    '{"url":"https://b.example/","type":"reddit","stats":{"subscribers":1551057}},' +
    '{"url":"https://d.example/","type":"source_code","stats":{"contributors":785,"stars":40158}},{"url":"https://c.example/","type":"website"}],' +
    '"whitepaper":{"link":"https://e.example/","thumbnail":"https://f.example/1689.jpg"},' +
    '"first_data_at":"2015-08-07T00:00:00Z","last_data_at":"2025-09-25T16:40:00Z"}',
  '/coins/eth-ethereum/events':
    '[{"id":"devcon-7","date":"2025-11-12T00:00:00Z","date_to":null,"name":"Devcon","description":"","is_conference":true,' +
    '"link":null,"proof_image_link":null},{"id":"fork","date":"2024-03-13T13:55:00Z","date_to":"2024-03-14T00:00:00Z","name":"Fork",' +
    '"description":"x","is_conference":false,"link":"https://g.example/","proof_image_link":""}]',
  '/coins/eth-ethereum/exchanges':
    '[{"id":"bitz","name":"Bitz","fiats":[{"name":"Euro","symbol":"EUR"}],"adjusted_volume_24h_share":12.345678901234567},' +
    '{"id":"odd","name":"Odd","fiats":[],"adjusted_volume_24h_share":0}]',
  '/coins/eth-ethereum/markets':
    '[{"exchange_id":"bitz","exchange_name":"Bitz","pair":"ETH/USDT","base_currency_id":"eth-ethereum",' +
    '"base_currency_name":"Ethereum","quote_currency_id":"usdt-tether","quote_currency_name":"Tether",' +
    '"market_url":null,"category":"Spot","fee_type":"Percentage","outlier":false,' +
    '"adjusted_volume_24h_share":1.5,"quotes":{"USD":{"price":4000.123456789,"volume_24h":6.0349609958149e-7}},' +
    '"last_updated":"2025-09-25T16:40:00Z","trust_score":"high"}]',
  '/exchanges/bitz/markets':
    '[{"pair":"ETH/USDT","base_currency_id":"eth-ethereum","base_currency_name":"Ethereum",' +
    '"quote_currency_id":"usdt-tether","quote_currency_name":"Tether","market_url":"https://h.example/","category":"",' +
    '"fee_type":"","outlier":true,"reported_volume_24h_share":0.1,"quotes":{"USD":{"price":4000,"volume_24h":1}},' +
    '"last_updated":"2025-09-25T16:40:00Z"}]',
  '/tags':
    '[{"id":"smart-contracts","name":"Smart Contracts","coin_counter":428,"ico_counter":305,"description":"","type":"technical",' +
    '"coins":["eth-ethereum"],"icos":[]},{"id":"a-first","name":"First","coin_counter":0,"ico_counter":0,"description":"d",' +
    '"type":"functional","coins":[],"icos":["ico-x"]}]',
  '/people/v-b':
    '{"id":"v-b","name":"V B","description":"","teams_count":2,"links":{"twitter":[{"url":"https://i.example/","followers":5}],' +
    '"github":[],"additional":[{"url":"https://j.example/"}]},"positions":[{"coin_id":"eth-ethereum","coin_name":"Ethereum","position":"Author"}]}',
  '/people/prima':
    '{"id":"prima","name":"prima","description":null,"teams_count":1,"links":{},"positions":[{"coin_id":"eth-ethereum","coin_name":"Ethereum","position":"11"}]}',
  '/contracts': '["eth-ethereum","a-platform"]',
  '/contracts/eth-ethereum': '[{"address":"0xAbC","type":"ERC20","id":"usdt-tether","active":true}]',
  '/contracts/a-platform': '[]',
  '/coins/mappings':
    '{"coinpaprika":"eth-ethereum","coinmarketcap":"1027","coingecko":"ethereum","cryptocompare":"","isin":"","dti":"","more":{"b":1,"a":[1.5]}}',
  '/changelog/ids':
    '[{"currency_id":"c-now","old_id":"c-duplicate-1","new_id":"c-later","changed_at":"2025-09-03T11:03:17Z"},' +
    '{"currency_id":"dhd-coin-1","old_id":"dhd-coin-duplicate-2","new_id":"dhd-coin-1","changed_at":"2025-09-02T11:02:31Z"}]',
};

let world: World;
let serve: Handler;

beforeAll(async () => {
  world = await createWorld({
    startAt: NOW,
    fetch: (_, clock) => async (request) => {
      const body = ANSWERS[new URL(request.url).pathname.replace('/v1', '')];
      return new Response(body ?? '{"error":"id not found"}', {
        status: body === undefined ? 404 : 200,
        headers: { 'Content-Type': 'application/json', Date: new Date(clock.now()).toUTCString() },
      });
    },
  });
  const chandler = await world.open();
  const { sql } = world.database;
  const span = { from: NOW - DAY, to: NOW };
  await wantSeries(sql, { coinIds: ['eth-ethereum'], quote: 'usd', interval: '24h', span, priority: 0 });
  // The list of coins seems to have been kept for a month: the changelog is read from there on.
  await sql`update market.coin set first_seen_at = ${NOW - 30 * DAY}`;
  await runSchedules(world, chandler, ['exchanges', 'renames', ...CATALOGUE_KINDS]);
  serve = createService({
    data: createWarehouse({ sql, clock: world.clock }),
    access: openAccess,
    clock: world.clock,
    onError: (error) => {
      throw error;
    },
  });
});
afterAll(() => world?.close());

const QUERIES: Record<string, string> = {
  '/tags': '?additional_fields=coins,icos',
  '/coins/mappings': '?coingecko=ethereum',
};
const paths = Object.keys(ANSWERS).filter((path) => path !== '/tickers');
it.each(paths)('the warehouse returns the bytes of the upstream for %s', async (path) => {
  const query = QUERIES[path] ?? '';
  const answer = await serve(new Request(`http://service/v1${path}${query}`));
  expect((await answer.text()).trimEnd()).toBe(ANSWERS[path]);
});

it('the warehouse returns the bytes of the upstream for /exchanges/{id} and /tags/{id}', async () => {
  const one = async (path: string) => (await (await serve(new Request(`http://service/v1${path}`))).text()).trimEnd();
  for (const list of ['/exchanges', '/tags'] as const)
    for (const row of JSON.parse(ANSWERS[list]!) as { id: string }[])
      expect(await one(`${list}/${row.id}?additional_fields=coins,icos`)).toBe(JSON.stringify(row));
});
