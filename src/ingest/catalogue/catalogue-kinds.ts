/** The kinds of the catalogue: how each is requested (by JSON-RPC and REST), how its answer is validated, and what is stored of it. */
import { z } from 'zod';
import { COINS_PATH, CONTRACTS_PATH, EXCHANGES_PATH, PEOPLE_PATH, TAGS_PATH } from '../../contract/interface/paths.ts';
import type { ToolName } from '../../contract/interface/tools.ts';
import {
  coinDetailsSchema,
  coinEventSchema,
  coinExchangeSchema,
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
import { writeCoinDetail } from '../../store/catalogue/coin-detail.ts';
import { writeContracts } from '../../store/catalogue/contract.ts';
import type { DocumentKind, ReceivedDocument } from '../../store/catalogue/document.ts';
import { writePerson } from '../../store/catalogue/person.ts';
import { writeTag, writeTags } from '../../store/catalogue/tag.ts';
import type { Validated } from '../answer/record-list.ts';
import { contractFault, eventFault, idFault, marketFault } from './catalogue-faults.ts';
import { coinFingerprint, personFingerprint, tagFingerprint } from './change-fingerprint.ts';
import { type CatalogueFacts, checkList, checkOne, type ReceivedAnswer } from './validate-catalogue.ts';

export type CatalogueQuestion = {
  readonly tool: ToolName;
  readonly arguments: Readonly<Record<string, string>>;
  /** The tool takes a `limit`, and returns the beginning of the list. */
  readonly isLimited: boolean;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
};

export type CatalogueKindPlan = {
  readonly question: (id: string) => CatalogueQuestion;
  readonly document: DocumentKind;
  /** A list that shrinks to less than this share of itself needs a second answer; null: no list. */
  readonly leastShare: number | null;
  readonly check: (received: ReceivedAnswer) => Validated<CatalogueFacts>;
};

const FIELDS = { tool: { additionalFields: 'coins,icos' }, rest: { additional_fields: 'coins,icos' } };
/** A list of nothing but ids. */
const platformSchema = z.string({ error: 'expected string' }).transform((id) => ({ id }));

const QUOTES = { quotes: 'USD' };
const below = (path: string, id: string, rest = '') => `${path}/${encodeURIComponent(id)}${rest}`;

export const CATALOGUE: Readonly<Record<CatalogueKind, CatalogueKindPlan>> = {
  tags: {
    document: 'tag',
    leastShare: 0.9,
    question: (id) =>
      id === ''
        ? { tool: 'getTags', arguments: FIELDS.tool, isLimited: true, path: TAGS_PATH, query: FIELDS.rest }
        : {
            tool: 'getTagById',
            arguments: { tagId: id, ...FIELDS.tool },
            isLimited: false,
            path: below(TAGS_PATH, id),
            query: FIELDS.rest,
          },
    check: (received) => {
      if (received.id !== '') {
        return checkOne(tagSchema, received, tagFingerprint, (tag) => (tx, at) => writeTag(tx, tag, at));
      }
      return checkList(tagSchema, received, idFault, ({ rows, texts, isWhole }) => ({
        documents: rows.map((tag, i) => ({ id: tag.id, text: texts[i]!, essence: tagFingerprint(tag) })),
        write: (tx, at) => writeTags(tx, { rows, at, isWhole }),
      }));
    },
  },
  platforms: {
    document: 'platforms',
    leastShare: 0.9,
    question: () => ({ tool: 'getPlatforms', arguments: {}, isLimited: true, path: CONTRACTS_PATH, query: {} }),
    check: (received) =>
      checkList(platformSchema, received, idFault, ({ rows, text, isWhole }) => ({
        documents: [asList('', text, true)],
        write: (tx, at) => writePlatforms(tx, { rows: [...new Set(rows.map(({ id }) => id))], at, isWhole }),
      })),
  },
  contracts: {
    document: 'contracts',
    leastShare: 0.9,
    question: (id) => ({
      tool: 'getContracts',
      arguments: { platformId: id },
      isLimited: true,
      path: below(CONTRACTS_PATH, id),
      query: {},
    }),
    check: (received) =>
      checkList(contractSchema, received, contractFault, ({ rows, text, isWhole }) => ({
        documents: [asList(received.id, text, false)],
        write: (tx, at) => writeContracts(tx, received.id, { rows, at, isWhole }),
      })),
  },
  coin_details: {
    document: 'coin',
    leastShare: null,
    question: (id) => ({
      tool: 'getCoinById',
      arguments: { coinId: id },
      isLimited: false,
      path: below(COINS_PATH, id),
      query: {},
    }),
    check: (received) =>
      checkOne(coinDetailsSchema, received, coinFingerprint, (coin) => (tx, at) => writeCoinDetail(tx, coin, at)),
  },
  coin_events: {
    document: 'coin_events',
    leastShare: 0.5,
    question: (id) => ofCoin('getCoinEvents', id, '/events'),
    check: (received) =>
      checkList(coinEventSchema, received, eventFault, ({ rows, text, isWhole }) => ({
        documents: [asList(received.id, text, true)],
        write: (tx, at) => writeCoinEvents(tx, received.id, { rows, at, isWhole }),
      })),
  },
  coin_exchanges: {
    document: 'coin_exchanges',
    leastShare: 0.5,
    question: (id) => ofCoin('getCoinExchanges', id, '/exchanges'),
    check: (received) =>
      checkList(coinExchangeSchema, received, idFault, ({ rows, text, isWhole }) => ({
        documents: [asList(received.id, text, false)],
        write: (tx, at) => writeCoinExchanges(tx, received.id, { rows, at, isWhole }),
      })),
  },
  coin_markets: {
    document: 'coin_markets',
    leastShare: 0.5,
    question: (id) => ofCoin('getCoinMarkets', id, '/markets', QUOTES),
    check: (received) =>
      checkList(coinMarketSchema, received, marketFault(received.latest), ({ rows, text, isWhole }) => ({
        documents: [asList(received.id, text, false)],
        write: (tx, at) => writeCoinMarkets(tx, received.id, { rows, at, isWhole }),
      })),
  },
  exchange_markets: {
    document: 'exchange_markets',
    leastShare: 0.5,
    question: (id) => ({
      tool: 'getExchangeMarkets',
      arguments: { exchangeId: id, ...QUOTES },
      isLimited: true,
      path: below(EXCHANGES_PATH, id, '/markets'),
      query: QUOTES,
    }),
    check: (received) =>
      checkList(exchangeMarketSchema, received, marketFault(received.latest), ({ rows, text, isWhole }) => ({
        documents: [asList(received.id, text, false)],
        write: (tx, at) => writeExchangeMarkets(tx, received.id, { rows, at, isWhole }),
      })),
  },
  people: {
    document: 'person',
    leastShare: null,
    question: (id) => ({
      tool: 'getPeopleById',
      arguments: { personId: id },
      isLimited: false,
      path: below(PEOPLE_PATH, id),
      query: {},
    }),
    check: (received) =>
      checkOne(personSchema, received, personFingerprint, (person) => (tx, at) => writePerson(tx, person, at)),
  },
};

function ofCoin(
  tool: ToolName,
  id: string,
  rest: string,
  query: Readonly<Record<string, string>> = {},
): CatalogueQuestion {
  return { tool, arguments: { coinId: id, ...query }, isLimited: true, path: below(COINS_PATH, id, rest), query };
}

/** A list as one document. `changes`: its old versions are kept. */
function asList(id: string, text: string, changes: boolean): ReceivedDocument {
  return { id, text, essence: changes ? JSON.stringify(JSON.parse(text)) : '' };
}
