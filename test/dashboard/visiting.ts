/** Opens the dashboard over a test database, and visits it as a browser on this machine does. */
import type { App } from '../../src/app.ts';
import { createScaledClock } from '../../src/clock.ts';
import { createKey, createTestDashboard, ORIGIN } from '../support/dashboard.ts';
import type { TestDatabase } from '../support/database.ts';

/** In the middle of a day and of a month, so that no window ends during a test. */
export const NOW = Date.UTC(2030, 4, 15, 10);
/** An upstream that nobody runs. */
export const ACCOUNT = 'anonymous@127.0.0.1:9';

export type Seen = { readonly status: number; readonly html: string; readonly text: string; readonly headers: Headers };

export type Visit = {
  readonly app: App;
  readonly look: (path: string) => Promise<Seen>;
  /** Sends the form that the page at this address shows, as an operator who is signed in. */
  readonly confirm: (path: string) => Promise<Seen>;
  /** The same, and then the same form again, as a browser does when it reloads the response. */
  readonly confirmTwice: (path: string) => Promise<readonly Seen[]>;
  readonly signIn: () => Promise<void>;
  /** Everything that was logged, and every error that no visitor saw. */
  readonly log: () => string;
  readonly errors: readonly unknown[];
  prepare(): Promise<void>;
  close(): Promise<void>;
};

/** `speed`: how fast the clock of the dashboard runs. When it stands still, no figure that several pages share becomes too old. */
export async function visit(
  database: TestDatabase,
  settings: Record<string, string> = {},
  { speed = 1 }: { readonly speed?: number } = {},
): Promise<Visit> {
  const clock = createScaledClock({ speed, startAt: NOW });
  const env = { CHANDLER_BASE_URL: 'http://127.0.0.1:9/v1', ...settings };
  const dashboard = await createTestDashboard(database.url, { clock, states: () => null, env });
  const { app, errors, log } = dashboard;
  let session: string | undefined;
  const ask = (path: string) => dashboard.ask(path, { session });
  const post = (path: string, form: Record<string, string>) =>
    dashboard.ask(path, { session, form, headers: { origin: ORIGIN } });
  const look = async (path: string) => seen(await ask(path));
  /** The hidden fields of the form at this address. */
  const formAt = async (path: string) => {
    const { html } = await look(path);
    const fields = html.slice(html.indexOf('<main')).matchAll(/type="hidden" name="(\w+)" value="([^"]+)"/g);
    const form = Object.fromEntries(Array.from(fields, ([, name, value]) => [name!, value!]));
    if (form.token === undefined) throw new Error(`there is no form at ${path}: ${textOf(html)}`);
    return form;
  };
  const follow = async (answer: Response) => {
    const next = answer.headers.get('location');
    return next === null ? seen(answer) : look(next);
  };
  return {
    ...{ app, errors, look, log },
    confirm: async (path) => follow(await post(path, await formAt(path))),
    confirmTwice: async (path) => {
      const form = await formAt(path);
      return [await follow(await post(path, form)), await follow(await post(path, form))];
    },
    signIn: async () => {
      const { key } = await createKey(database.sql, { name: 'ann' });
      session = await dashboard.signIn(key);
    },
    ...{ prepare: dashboard.prepare, close: dashboard.close },
  };
}

async function seen(answer: Response): Promise<Seen> {
  const html = await answer.text();
  return { status: answer.status, html, text: textOf(html), headers: answer.headers };
}

/** The text of the page's content as a reader sees it, with `|` between cells. */
function textOf(html: string): string {
  return html
    .slice(html.indexOf('<main'), html.indexOf('</main>'))
    .replace(/<\/t[dh]>/g, ' | ')
    .replace(/<[^>]*>/g, ' ')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
    .replace(/\s+/g, ' ');
}
