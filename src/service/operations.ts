/**
 * What those who run the service ask it: `/health` (does it live), `/ready` (does it work), `/metrics` (Prometheus), `/backfills`
 * (how far it is).
 */
import { type Context, Hono } from 'hono';
import type { Handler } from '../contract/interface/handler.ts';

export type Operations = {
  /** As JSON; `isReady` decides the status of `/ready`. */
  health(): { readonly isReady: boolean; readonly body: Readonly<Record<string, unknown>> };
  metrics(): Promise<{ readonly contentType: string; readonly text: string }>;
  /** Resolves to null when the database cannot be asked now. Null: who runs this has none to show. */
  readonly backfills: ((which: BackfillsAsked) => Promise<readonly Readonly<Record<string, unknown>>[] | null>) | null;
  /** Told of what nobody expected; the caller only sees a 500. */
  onError(error: unknown, url: string): void;
};

export type BackfillsAsked = {
  /** Those that are over as well. */
  readonly all: boolean;
  readonly limit: number;
  /** Only this one. */
  readonly id: number | null;
};

/** Where nobody says how many. */
export const USUAL_BACKFILLS = 100;
/** As many as may be asked for at once. */
export const MOST_BACKFILLS = 1_000;
const HIGHEST_ID = 2 ** 31 - 1;

export function createOperations({ health, metrics, backfills, onError }: Operations): Handler {
  const app = new Hono({ strict: false });
  app.use(async (c, next) => {
    c.header('Cache-Control', 'no-store');
    await next();
  });
  app.get('/health', (c) => c.json(health().body));
  app.get('/ready', (c) => {
    const { isReady, body } = health();
    return c.json(body, isReady ? 200 : 503);
  });
  app.get('/metrics', async (c) => {
    const { contentType, text } = await metrics();
    return c.body(text, 200, { 'Content-Type': contentType });
  });
  if (backfills !== null) showBackfills(app, backfills);
  const pages = `/health, /ready${backfills === null ? ' and /metrics' : ', /metrics, /backfills and /backfills/<id>'}`;
  app.notFound((c) => c.json({ error: `there are ${pages}` }, 404));
  app.onError((error, c) => {
    onError(error, c.req.url);
    return c.json({ error: 'an unexpected server error has occurred' }, 500);
  });
  return async (request) => app.fetch(request);
}

function showBackfills(app: Hono, backfills: NonNullable<Operations['backfills']>): void {
  app.get('/backfills', async (c) => {
    const asked = readQuery(c.req.query());
    if ('error' in asked) return c.json(asked, 400);
    const found = await backfills({ ...asked, id: null });
    return found === null ? away(c) : c.json(found);
  });
  app.get('/backfills/:id', async (c) => {
    const text = c.req.param('id');
    const id = wholeNumber(text, HIGHEST_ID);
    if (id === null) {
      return c.json({ error: `${JSON.stringify(text)} is no number of a backfill; write it like /backfills/12` }, 400);
    }
    const found = await backfills({ all: true, limit: 1, id });
    if (found === null) return away(c);
    const [row] = found;
    return row === undefined
      ? c.json({ error: `there is no backfill ${id}; /backfills?all=true has them` }, 404)
      : c.json(row);
  });
}

function away(c: Context): Response {
  return c.json({ error: 'the database cannot be asked now; /health says why' }, 503);
}

function readQuery(query: Readonly<Record<string, string>>): Omit<BackfillsAsked, 'id'> | { readonly error: string } {
  const { all = 'false', limit: most = String(USUAL_BACKFILLS), ...others } = query;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) return { error: `${JSON.stringify(unknown)} is no parameter; there are all and limit` };
  if (all !== 'true' && all !== 'false') {
    return { error: `all is ${JSON.stringify(all)}, it must be true or false` };
  }
  const limit = wholeNumber(most, MOST_BACKFILLS);
  if (limit === null) {
    return { error: `limit is ${JSON.stringify(most)}, it must be a whole number from 1 to ${MOST_BACKFILLS}` };
  }
  return { all: all === 'true', limit };
}

function wholeNumber(text: string, most: number): number | null {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : 0;
  return value >= 1 && value <= most ? value : null;
}
