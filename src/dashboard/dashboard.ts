/**
 * The dashboard: pages over the warehouse for people, at `/` and below `/ui/`. The server renders every page. A page has all of its state
 * in its address, and loads nothing from other hosts.
 */
import { type Context, Hono } from 'hono';
import type { Handler } from '../contract/interface/handler.ts';
import { readVersions } from '../views/dashboard/versions.ts';
import { ASSETS, assetOf, packedAsset } from './assets/assets.ts';
import { createChangeWatch } from './live/change-watch.ts';
import { addActions } from './routes/action-routes.tsx';
import { createPages, pageNotFound } from './routes/pages.tsx';
import { type Env, pathOf } from './routes/request.ts';
import { addSignIn, gate } from './routes/sign-in-routes.tsx';
import type { DashboardDeps, ScreenInput } from './screen.ts';
import { DATA_SOURCES, SCREENS } from './screens/screens.ts';

/** Allows only Chandler's scripts, styles and pictures, no frame around a page, and no form to another host. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HEADERS = {
  'Content-Security-Policy': POLICY,
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
} as const;

/** The longest form contains a key. */
const MOST_FORM_BYTES = 16_384;

export function createDashboard(deps: DashboardDeps): Handler {
  const { sql, clock } = deps;
  const watch = createChangeWatch({
    ...{ clock, isUnavailable: deps.isUnavailable, read: () => readVersions(sql) },
    onError: (error) => deps.onError(error, '/ui/events'),
  });
  const pages = createPages(deps);
  const app = new Hono<Env>();

  app.use(async (c, next) => {
    await next();
    for (const [name, value] of Object.entries(HEADERS)) c.header(name, value);
    if (!c.req.path.startsWith(ASSETS)) c.header('Cache-Control', 'no-store');
  });
  // Browsers send the length of a form, and the server reads no more than that.
  app.use(async (c, next) => {
    if (c.req.header('transfer-encoding') !== undefined)
      return c.text('a form must have a Content-Length header, not Transfer-Encoding', 411);
    if (Number(c.req.header('content-length') ?? 0) > MOST_FORM_BYTES) return c.text('the form is too long', 413);
    return next();
  });
  app.get(`${ASSETS}:name`, answerAsset);
  addSignIn(app, deps, pages);
  app.use(gate(deps));
  app.get('/ui', (c) => c.redirect('/', 303));
  app.get('/ui/events', (c) => {
    const headers = { 'Content-Type': 'text/event-stream; charset=UTF-8', 'X-Accel-Buffering': 'no' };
    return c.body(watch.follow(c.req.raw.signal), 200, headers);
  });
  addActions(app, deps, pages);
  const inputOf = (c: Context<Env>): ScreenInput => {
    const id = c.req.param('id') ?? '';
    return { deps, url: new URL(c.req.url), id, now: clock.now() };
  };
  for (const { path, view } of SCREENS) app.get(path, async (c) => pages.show(c, await view(inputOf(c))));
  for (const { path, read } of DATA_SOURCES) app.get(path, async (c) => c.json(await read(inputOf(c))));
  app.notFound((c) => pages.show(c, pageNotFound(pathOf(c))));
  app.onError((error, c) => pages.showError(c as Context<Env>, error));
  return async (request, peer) => app.fetch(request, { peer });
}

async function answerAsset(c: Context<Env>): Promise<Response> {
  const asset = assetOf(c.req.param('name') ?? '');
  if (asset === null) return c.text('there is no such file', 404);
  const headers = { 'Cache-Control': 'no-cache', ETag: asset.tag, 'Content-Type': asset.type };
  if (c.req.header('If-None-Match') === asset.tag) return c.body(null, 304, headers);
  if (!/\bgzip\b/.test(c.req.header('Accept-Encoding') ?? ''))
    return c.body(asset.body as Uint8Array<ArrayBuffer>, 200, headers);
  const packed = (await packedAsset(asset)) as Uint8Array<ArrayBuffer>;
  return c.body(packed, 200, { ...headers, 'Content-Encoding': 'gzip', Vary: 'Accept-Encoding' });
}
