/** `/openapi.json` for programs and `/docs` for people, open to everybody. */
import { type Context, Hono } from 'hono';
import type { Clock } from '../../clock.ts';
import { type OpenApiDocument, openApiDocument } from '../../contract/interface/openapi.ts';
import { formatTime } from '../../contract/time.ts';
import { VERSION } from '../../core/version.ts';
import type { ServiceEnv } from '../http/request-input.ts';
import type { ListedTool } from '../rpc/toolbox.ts';
import { DOCS_POLICY, docsPage } from './docs-page.ts';

export const DOCS_PATHS = ['/openapi.json', '/docs'] as const;
const CACHE = 'public, max-age=300';

export function docsRoutes({
  tools,
  clock,
}: {
  readonly tools: readonly ListedTool[];
  readonly clock: Clock;
}): Hono<ServiceEnv> {
  const routes = new Hono<ServiceEnv>();
  // Created at the first request, because most processes never get one.
  let document: OpenApiDocument | null = null;
  let json: string | null = null;
  let written: { readonly origin: string; readonly day: string; readonly page: Promise<string> } | null = null;
  const theDocument = () => {
    document ??= openApiDocument({ version: VERSION });
    return document;
  };
  routes.get(DOCS_PATHS[0], (c) => {
    json ??= `${JSON.stringify(theDocument())}\n`;
    return c.body(json, 200, { 'Content-Type': 'application/json; charset=UTF-8', 'Cache-Control': CACHE });
  });
  routes.get(DOCS_PATHS[1], async (c) => {
    const origin = originOf(c);
    const now = clock.now();
    const day = formatTime(now).slice(0, 'YYYY-MM-DD'.length);
    if (written?.origin !== origin || written.day !== day) {
      written = { origin, day, page: docsPage(theDocument(), tools, { origin, now }) };
    }
    return c.body(await written.page, 200, {
      'Content-Type': 'text/html; charset=UTF-8',
      'Cache-Control': CACHE,
      'Content-Security-Policy': DOCS_POLICY,
      'Referrer-Policy': 'no-referrer',
      Vary: 'X-Forwarded-Proto',
    });
  });
  return routes;
}

/**
 * The origin at which the reader reached this service. Only the scheme is taken from the headers of a proxy. Readers send their keys to the host of
 * the examples, so nobody else may choose the host, not even through a shared cache.
 */
function originOf(c: Context<ServiceEnv>): string {
  const { protocol, host } = new URL(c.req.url);
  const isSecure = protocol === 'https:' || c.req.header('X-Forwarded-Proto') === 'https';
  // A host with other characters could end the quotes of an example.
  return `${isSecure ? 'https' : 'http'}://${/^[\w.:[\]-]+$/.test(host) ? host : '127.0.0.1'}`;
}
