/** The kinds of the catalogue: how each is requested (by JSON-RPC and REST), how its answer is validated, and what is stored from it. */
import { z } from 'zod';
import type { Instant } from '../../clock.ts';
import {
  COINS_PATH,
  CONTRACTS_PATH,
  EXCHANGES_PATH,
  MAPPINGS_PATH,
  PEOPLE_PATH,
  TAGS_PATH,
} from '../../contract/interface/paths.ts';
import type { ToolName } from '../../contract/interface/tools.ts';
import {
  coinDetailsSchema,
  coinEventSchema,
  coinExchangeSchema,
  coinMappingSchema,
  coinMarketSchema,
  contractSchema,
  exchangeMarketSchema,
  personSchema,
  tagSchema,
} from '../../contract/record/catalogue.ts';
import type { CatalogueKind } from '../../store/catalogue/catalogue-item.ts';
import {
  writeCoinEvents,
  writeCoinExchanges,
  writeCoinMarkets,
  writeExchangeMarkets,
  writePlatforms,
} from '../../store/catalogue/catalogue-lists.ts';
import type { UpstreamList } from '../../store/catalogue/catalogue-rows.ts';
import { writeCoinDetail } from '../../store/catalogue/coin-detail.ts';
import { writeContracts } from '../../store/catalogue/contract.ts';
import type { DocumentKind } from '../../store/catalogue/document.ts';
import { writePerson } from '../../store/catalogue/person.ts';
import { writeTag, writeTags } from '../../store/catalogue/tag.ts';
import type { SqlOrTransaction } from '../../store/connection/connect.ts';
import type { Validated } from '../answer/record-list.ts';
import {
  coinFingerprint,
  contractFault,
  eventFault,
  idFault,
  mappingFingerprint,
  marketFault,
  personFingerprint,
  tagFingerprint,
} from './catalogue-records.ts';
import { type CatalogueFacts, checkList, checkOne, type ReceivedAnswer } from './validate-catalogue.ts';

export type CatalogueQuestion = {
  /** Null: REST only. The hosted tools get no key, and serve only free data (decision 66). */
  readonly tool: ToolName | null;
  readonly arguments: Readonly<Record<string, string>>;
  /** The tool takes a `limit`, and returns the beginning of the list. */
  readonly isLimited: boolean;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
};

type CatalogueKindPlan = {
  readonly question: (id: string) => CatalogueQuestion;
  readonly document: DocumentKind;
  /** A list that shrinks to less than this share of its rows needs a second answer; null: the kind is no list. */
  readonly leastShare: number | null;
  readonly check: (received: ReceivedAnswer) => Validated<CatalogueFacts>;
};

const mappingWithId = coinMappingSchema.transform((mapping) => ({ ...mapping, id: mapping.coinpaprika }));
/** A list that contains only ids. */
const platformSchema = z.string({ error: 'expected string' }).transform((id) => ({ id }));
const WITH_COINS = { arguments: { additionalFields: 'coins,icos' }, query: { additional_fields: 'coins,icos' } };
const IN_DOLLARS = { arguments: { quotes: 'USD' }, query: { quotes: 'USD' } };

const allTags = request('getTags', null, TAGS_PATH, { ...WITH_COINS, isLimited: true });
const oneTag = request('getTagById', 'tagId', TAGS_PATH, WITH_COINS);

export const CATALOGUE: Readonly<Record<CatalogueKind, CatalogueKindPlan>> = {
  tags: {
    document: 'tag',
    leastShare: 0.9,
    // The item without an id is the list of all tags.
    question: (id) => (id === '' ? allTags(id) : oneTag(id)),
    check: (received) => {
      if (received.id !== '') return checkOne(tagSchema, received, tagFingerprint, writeTag);
      return checkList(tagSchema, received, idFault, ({ rows, texts, isWhole }) => ({
        documents: rows.map((tag, i) => ({ id: tag.id, text: texts[i]!, fingerprint: tagFingerprint(tag) })),
        write: (tx, at) => writeTags(tx, { rows, at, isWhole }),
      }));
    },
  },
  platforms: {
    document: 'platforms',
    leastShare: 0.9,
    question: request('getPlatforms', null, CONTRACTS_PATH, { isLimited: true }),
    check: oneDocument(platformSchema, idFault, {
      keepsVersions: true,
      write: (tx, _, list) => writePlatforms(tx, { ...list, rows: [...new Set(list.rows.map(({ id }) => id))] }),
    }),
  },
  contracts: {
    document: 'contracts',
    leastShare: 0.9,
    question: request('getContracts', 'platformId', CONTRACTS_PATH, { isLimited: true }),
    check: oneDocument(contractSchema, contractFault, { write: writeContracts }),
  },
  coin_details: {
    document: 'coin',
    leastShare: null,
    question: request('getCoinById', 'coinId', COINS_PATH),
    check: (received) => checkOne(coinDetailsSchema, received, coinFingerprint, writeCoinDetail),
  },
  coin_events: {
    document: 'coin_events',
    leastShare: 0.5,
    question: request('getCoinEvents', 'coinId', COINS_PATH, { subpath: '/events', isLimited: true }),
    check: oneDocument(coinEventSchema, eventFault, { write: writeCoinEvents, keepsVersions: true }),
  },
  coin_exchanges: {
    document: 'coin_exchanges',
    leastShare: 0.5,
    question: request('getCoinExchanges', 'coinId', COINS_PATH, { subpath: '/exchanges', isLimited: true }),
    check: oneDocument(coinExchangeSchema, idFault, { write: writeCoinExchanges }),
  },
  coin_markets: {
    document: 'coin_markets',
    leastShare: 0.5,
    question: request('getCoinMarkets', 'coinId', COINS_PATH, { ...IN_DOLLARS, subpath: '/markets', isLimited: true }),
    check: oneDocument(coinMarketSchema, marketFault, { write: writeCoinMarkets }),
  },
  coin_mappings: {
    document: 'coin_mapping',
    leastShare: null,
    question: (id) => ({
      tool: null,
      arguments: {},
      isLimited: false,
      path: MAPPINGS_PATH,
      query: { coinpaprika: id },
    }),
    check: (received) =>
      checkOne(mappingWithId, received, mappingFingerprint, async () => {
        // The document is everything; there are no rows to write.
      }),
  },
  exchange_markets: {
    document: 'exchange_markets',
    leastShare: 0.5,
    question: request('getExchangeMarkets', 'exchangeId', EXCHANGES_PATH, {
      ...IN_DOLLARS,
      subpath: '/markets',
      isLimited: true,
    }),
    check: oneDocument(exchangeMarketSchema, marketFault, { write: writeExchangeMarkets }),
  },
  people: {
    document: 'person',
    leastShare: null,
    question: request('getPeopleById', 'personId', PEOPLE_PATH),
    check: (received) => checkOne(personSchema, received, personFingerprint, writePerson),
  },
};

type RequestOptions = Partial<Pick<CatalogueQuestion, 'arguments' | 'query' | 'isLimited'>> & {
  readonly subpath?: string;
};

/**
 * How an item is requested: by a tool, whose argument `idArgument` takes the id, or by REST at `path`/id`subpath`. `idArgument` null: there is only
 * one item, without an id.
 */
function request(tool: ToolName, idArgument: string | null, path: string, options: RequestOptions = {}) {
  const { subpath = '', query = {}, isLimited = false } = options;
  return (id: string): CatalogueQuestion => ({
    tool,
    arguments: { ...(idArgument === null ? {} : { [idArgument]: id }), ...options.arguments },
    isLimited,
    path: idArgument === null ? path : `${path}/${encodeURIComponent(id)}${subpath}`,
    query,
  });
}

/** Validates a list that is stored as one document. `keepsVersions`: old versions of the document are kept. */
function oneDocument<S extends z.ZodType>(
  schema: S,
  fault: (row: z.output<S>, latest: Instant) => string | null,
  {
    write,
    keepsVersions = false,
  }: {
    readonly write: (tx: SqlOrTransaction, id: string, list: UpstreamList<z.output<S>>) => Promise<void>;
    readonly keepsVersions?: boolean;
  },
): CatalogueKindPlan['check'] {
  return (received) =>
    checkList(schema, received, fault, ({ rows, text, isWhole }) => ({
      documents: [{ id: received.id, text, fingerprint: keepsVersions ? JSON.stringify(JSON.parse(text)) : '' }],
      write: (tx, at) => write(tx, received.id, { rows, at, isWhole }),
    }));
}
