/** The query of `/coins/mappings`: the id of a coin, under the name of its provider. */
import { ID_PROVIDERS, type IdProvider } from '../record/catalogue.ts';
import type { MappingQuery } from '../record/market-data.ts';
import { invalid, ok, optional, type Parsed } from './parameters.ts';

const RULE = `exactly one of ${ID_PROVIDERS.join(', ')} must be given`;
const MAX_NAME_LENGTH = 40;

export const mappingParameters = ID_PROVIDERS.map((provider) => {
  const example = provider === 'coinpaprika' ? { example: 'btc-bitcoin' } : {};
  const description = `The coin by its id at ${provider}. One parameter of these, and no other.`;
  return optional(provider, description, { type: 'string', ...example }, null, ok);
});

/** Only here, the upstream refuses unknown parameters (upstream-api.md, 1.14). */
export function parseMappingParameters(query: URLSearchParams): Parsed<MappingQuery> {
  const unknown = [...query.keys()].find((name) => !isProvider(name));
  if (unknown !== undefined) return invalid(unknown.slice(0, MAX_NAME_LENGTH), `is unknown: ${RULE}`, null);
  return oneMapping([...query].map(([name, id]) => [name as IdProvider, id]));
}

/** The one given id; invalid if there are none or several. An empty text counts as not given, as for every parameter. */
export function oneMapping(ids: readonly (readonly [IdProvider, string | undefined])[]): Parsed<MappingQuery> {
  const [given, other] = ids.filter(([, id]) => id);
  if (given !== undefined && other === undefined) return ok({ provider: given[0], id: given[1]! });
  return { ok: false, message: `invalid parameters: ${RULE}`, parameter: (other ?? given)?.[0] ?? ID_PROVIDERS[0] };
}

function isProvider(name: string): name is IdProvider {
  return (ID_PROVIDERS as readonly string[]).includes(name);
}
