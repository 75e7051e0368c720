/** What those who run the service ask it: `/health` (does it live), `/ready` (does it work), `/metrics` (Prometheus). */
import { Hono } from 'hono';
import type { Handler } from '../contract/handler.ts';

export type Operations = {
  /** As JSON; `isReady` decides the status of `/ready`. */
  health(): { readonly isReady: boolean; readonly body: Readonly<Record<string, unknown>> };
  metrics(): Promise<{ readonly contentType: string; readonly text: string }>;
  /** Told of what nobody expected; the caller only sees a 500. */
  onError(error: unknown, url: string): void;
};

export function createOperations({ health, metrics, onError }: Operations): Handler {
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
  app.notFound((c) => c.json({ error: 'there are /health, /ready and /metrics' }, 404));
  app.onError((error, c) => {
    onError(error, c.req.url);
    return c.json({ error: 'an unexpected server error has occurred' }, 500);
  });
  return async (request) => app.fetch(request);
}
