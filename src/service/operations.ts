/** For operators: `/health` (is it alive), `/ready` (does it work), `/metrics` (Prometheus), `/backfills` (their progress). */
import { type Context, Hono } from 'hono';
import type { Handler } from '../contract/interface/handler.ts';

type Operations = {
  /** `body` is sent as JSON; `isReady` decides the status of `/ready`. */
  health(): { readonly isReady: boolean; readonly body: Readonly<Record<string, unknown>> };
  /** The newest attestation, for `/health`. Null when this service writes none. */
  readonly attestation: (() => Promise<unknown>) | null;
  metrics(): Promise<{ readonly contentType: string; readonly text: string }>;
  /** Resolves to null while the database is unavailable. Null when this service shows no backfills. */
  readonly backfills: ((query: BackfillsQuery) => Promise<readonly Readonly<Record<string, unknown>>[] | null>) | null;
  /** Called with unexpected errors; the caller only sees a 500. */
  onError(error: unknown, url: string): void;
};

export type BackfillsQuery = {
  /** Lists finished backfills as well. */
  readonly all: boolean;
  readonly limit: number;
  /** Only the backfill with this number; null: all. */
  readonly id: number | null;
};

export const DEFAULT_BACKFILLS = 100;
export const MAX_BACKFILLS = 1_000;
const HIGHEST_ID = 2 ** 31 - 1;

export function createOperations({ health, attestation, metrics, backfills, onError }: Operations): Handler {
  const app = new Hono({ strict: false });
  app.use(async (c, next) => {
    c.header('Cache-Control', 'no-store');
    await next();
  });
  app.get('/health', async (c) => {
    const { body } = health();
    return c.json(attestation === null ? body : { ...body, attestation: await attestation() });
  });
  app.get('/ready', (c) => {
    const { isReady, body } = health();
    return c.json(body, isReady ? 200 : 503);
  });
  app.get('/metrics', async (c) => {
    const { contentType, text } = await metrics();
    return c.body(text, 200, { 'Content-Type': contentType });
  });
  if (backfills !== null) showBackfills(app, backfills);
  for (const path of ['/health', '/ready', '/metrics', ...(backfills === null ? [] : ['/backfills', '/backfills/:id'])])
    app.all(path, (c) =>
      c.json({ error: `${c.req.method} is not possible here: use GET` }, 405, { Allow: 'GET, HEAD' }),
    );
  const pages = `/health, /ready${backfills === null ? ' and /metrics' : ', /metrics, /backfills and /backfills/<id>'}`;
  app.notFound((c) => c.json({ error: `the paths here are ${pages}` }, 404));
  app.onError((error, c) => {
    onError(error, c.req.url);
    return c.json({ error: 'an unexpected server error has occurred' }, 500);
  });
  return async (request) => app.fetch(request);
}

function showBackfills(app: Hono, backfills: NonNullable<Operations['backfills']>): void {
  app.get('/backfills', async (c) => {
    const query = readQuery(c.req.query());
    if ('error' in query) return c.json(query, 400);
    const found = await backfills({ ...query, id: null });
    return found === null ? unavailable(c) : c.json(found);
  });
  app.get('/backfills/:id', async (c) => {
    const text = c.req.param('id');
    const id = wholeNumber(text, HIGHEST_ID);
    if (id === null) {
      return c.json({ error: `${JSON.stringify(text)} is not the number of a backfill; example: /backfills/12` }, 400);
    }
    const found = await backfills({ all: true, limit: 1, id });
    if (found === null) return unavailable(c);
    const [row] = found;
    return row === undefined
      ? c.json({ error: `there is no backfill ${id}; /backfills?all=true lists all` }, 404)
      : c.json(row);
  });
}

function unavailable(c: Context): Response {
  return c.json({ error: 'the database is unavailable; /health says why' }, 503);
}

function readQuery(query: Readonly<Record<string, string>>): Omit<BackfillsQuery, 'id'> | { readonly error: string } {
  const { all = 'false', limit: most = String(DEFAULT_BACKFILLS), ...others } = query;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined)
    return { error: `${JSON.stringify(unknown)} is not a parameter; the parameters are all and limit` };
  if (all !== 'true' && all !== 'false') {
    return { error: `all must be true or false, got ${JSON.stringify(all)}` };
  }
  const limit = wholeNumber(most, MAX_BACKFILLS);
  if (limit === null) {
    return { error: `limit must be a whole number from 1 to ${MAX_BACKFILLS}, got ${JSON.stringify(most)}` };
  }
  return { all: all === 'true', limit };
}

function wholeNumber(text: string, most: number): number | null {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  return value >= 1 && value <= most ? value : null;
}
