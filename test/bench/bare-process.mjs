// The yardstick: the same bytes from a handler of the same HTTP library that does nothing else. argv: file of [path, body] pairs
import { readFileSync } from 'node:fs';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';

const app = new Hono();
for (const [path, body] of JSON.parse(readFileSync(process.argv[2], 'utf8')))
  app.get(path, (c) => c.body(body, 200, { 'Content-Type': 'application/json' }));
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => console.log(`http://127.0.0.1:${port}`));
