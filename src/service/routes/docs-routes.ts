/** `/openapi.json` for programs and `/docs` for people: the interface of this service, open to everybody. */
import { Hono } from 'hono';
import { openApiDocument } from '../../contract/interface/openapi.ts';
import { VERSION } from '../../core/version.ts';
import type { ServiceEnv } from '../http/request-input.ts';
import { DOCS_POLICY, docsPage } from './docs-page.ts';

export const DOCS_PATHS = ['/openapi.json', '/docs'] as const;
const CACHE = 'public, max-age=300';

export function docsRoutes(): Hono<ServiceEnv> {
  const routes = new Hono<ServiceEnv>();
  // Made at the first request: most processes never get one.
  let made: Promise<{ json: string; page: string }> | null = null;
  const written = () => {
    made ??= write();
    return made;
  };
  routes.get(DOCS_PATHS[0], async (c) =>
    c.body((await written()).json, 200, { 'Content-Type': 'application/json; charset=UTF-8', 'Cache-Control': CACHE }),
  );
  routes.get(DOCS_PATHS[1], async (c) =>
    c.body((await written()).page, 200, {
      'Content-Type': 'text/html; charset=UTF-8',
      'Cache-Control': CACHE,
      'Content-Security-Policy': DOCS_POLICY,
      'Referrer-Policy': 'no-referrer',
    }),
  );
  return routes;
}

async function write(): Promise<{ json: string; page: string }> {
  const document = openApiDocument({ version: VERSION });
  return { json: `${JSON.stringify(document)}\n`, page: await docsPage(document) };
}
