/** Example arguments of tools and example answers, for `/docs` and the OpenAPI document. */
import answers from './example-answers.json' with { type: 'json' };

/** Values for required arguments, by name of the argument. Times are missing, because `/docs` fills in current ones. */
export const EXAMPLE_ARGUMENTS: Readonly<Record<string, string | number>> = {
  coinId: 'btc-bitcoin',
  coinpaprika: 'btc-bitcoin',
  personId: 'vitalik-buterin',
  tagId: 'smart-contracts',
  exchangeId: 'binance',
  platformId: 'eth-ethereum',
  contractAddress: '0xd26114cd6ee289accf82350c8d8487fedb8a0c07',
  baseCurrencyId: 'btc-bitcoin',
  quoteCurrencyId: 'usd-us-dollars',
  q: 'btc',
  type: 'coin',
  query: 'bitcoin',
  interval: '24h',
  statement: 'select * from market.candles limit 5',
  rationale: 'The user asked for it.',
};

/**
 * Answers of the simulated market, with shortened lists, by name of the endpoint or tool. A redirect is represented by its `Location`.
 * `test/service/docs.test.ts` writes the file: `npx vitest run test/service/docs.test.ts -u`.
 */
export const EXAMPLES: {
  readonly endpoints: Readonly<Record<string, unknown>>;
  readonly tools: Readonly<Record<string, unknown>>;
} = answers;
