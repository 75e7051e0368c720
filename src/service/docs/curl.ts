/** The requests of `/docs`, ready to be copied into a shell. They work on every plan that has the endpoint. */
import type { Instant } from '../../clock.ts';
import { EXAMPLE_ARGUMENTS } from '../../contract/interface/examples.ts';
import type { OpenApiOperation } from '../../contract/interface/openapi.ts';
import { formatTime } from '../../contract/time.ts';
import { DAY } from '../../core/interval.ts';
import type { ListedTool } from '../rpc/toolbox.ts';

/** The reader of an example: the origin at which the reader reached this service, such as `https://data.example.com`, and the current time. */
export type Reader = { readonly origin: string; readonly now: Instant };

/** Endpoints and tools that refuse a caller without a key: they are about the key itself, or not on the free plan. */
const NEED_A_KEY = ['getUser', 'getKeyInfo', 'keyInfo', 'getChangelogIDs', 'getMappings', 'getTickersSimple', 'runSql'];

/** This parameter is not required, but a request must have one of several, and the example uses this one. */
const CHOSEN = 'coinpaprika';

/** Endpoints and tools whose default interval, 5m, is not on the free plan. */
const PRICE_HISTORIES = ['getTickersHistoricalById', 'getHistoricalTicker', 'getHistoricalTickerByContract'];

export function requestExample(
  operation: OpenApiOperation & { readonly path: string },
  server: string,
  { origin, now }: Reader,
): string {
  const { path, operationId, parameters } = operation;
  const times = timesOf(operationId, now);
  let filled = path;
  const query: string[] = [];
  for (const { name, in: place, required, schema } of parameters) {
    const value = encodeURIComponent(String(times[name] ?? schema.example));
    if (place === 'path') filled = filled.replace(`{${name}}`, value);
    else if (required || name in times || name === CHOSEN) query.push(`${name}=${value}`);
  }
  return `curl ${keyFor(operationId)}'${origin}${server}${filled}${query.length > 0 ? `?${query.join('&')}` : ''}'`;
}

export function callExample(tool: ListedTool, path: string, { origin, now }: Reader): string {
  const params = { name: tool.name, arguments: exampleArguments(tool, now) };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  return `curl ${keyFor(tool.name)}'${origin}${path}' -H 'Content-Type: application/json' -d '${body}'`;
}

function keyFor(name: string): string {
  return NEED_A_KEY.includes(name) ? "-H 'Authorization: Bearer <your key>' " : '';
}

/** The arguments that a call must have, and those that let every plan make it. */
function exampleArguments({ name, inputSchema }: ListedTool, now: Instant): Record<string, unknown> {
  const times = timesOf(name, now);
  const named = Object.keys(inputSchema.properties).filter(
    (argument) => inputSchema.required.includes(argument) || argument in times || argument === CHOSEN,
  );
  return Object.fromEntries(named.map((argument) => [argument, times[argument] ?? EXAMPLE_ARGUMENTS[argument]]));
}

/** Times that the free plan may read: the candle of today, and the price of each of the last thirty days. */
function timesOf(name: string, now: Instant): Readonly<Record<string, string>> {
  const daysAgo = (days: number) => formatTime(now - days * DAY).slice(0, 'YYYY-MM-DD'.length);
  if (PRICE_HISTORIES.includes(name)) return { start: daysAgo(30), interval: '1d' };
  return { start: daysAgo(0), time: daysAgo(0) };
}
