/** The paths of the dashboard, and its answer while there is no database. Both are known without loading the dashboard. */

/** Matches the target as the client sent it. */
export const DASHBOARD_PATHS = /^\/(ui(\/[^?]*)?)?(\?.*)?$/;

const WAIT_SECONDS = 5;
const STARTING = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="${WAIT_SECONDS}">
<title>Chandler is starting</title></head><body><h1>Chandler is starting</h1>
<p>It waits for its database. This page reloads automatically; <a href="/health">/health</a> shows what it waits for.</p></body></html>`;

export function dashboardStarting(): Response {
  return new Response(STARTING, {
    status: 503,
    headers: {
      'Content-Type': 'text/html; charset=UTF-8',
      'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
      'Cache-Control': 'no-store',
      'Retry-After': String(WAIT_SECONDS),
    },
  });
}
