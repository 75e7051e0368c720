/** The dashboard over a test's database, called as a browser calls it, without a port. The test chooses the address of the visitor. */
import { type App, openApp } from '../../src/app.ts';
import { openDashboard } from '../../src/background/dashboard/open-dashboard.ts';
import type { State } from '../../src/background/notice/states.ts';
import { type Clock, systemClock } from '../../src/clock.ts';
import { parseConfig } from '../../src/config.ts';
import type { Handler } from '../../src/contract/interface/handler.ts';
import { makeApiKey } from '../../src/core/caller/api-key.ts';
import { createLog } from '../../src/log.ts';
import { type ApiKeyTerms, createApiKey } from '../../src/store/callers/api-key.ts';
import type { Sql } from '../../src/store/connection/connect.ts';

/** What a test changes in a request of a browser on the same machine. */
export type Asking = {
  readonly address?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The value of the session cookie. */
  readonly session?: string | undefined;
  /** The fields of a form: the request is a POST. */
  readonly form?: Readonly<Record<string, string>>;
};

export type TestDashboard = {
  readonly app: App;
  readonly handler: Handler;
  /** Unexpected errors, which the visitor does not see. */
  readonly errors: readonly unknown[];
  /** Everything that was logged. */
  readonly log: () => string;
  /** The answer, without following redirects. */
  ask(path: string, asking?: Asking): Promise<Response>;
  /** The text of the page. Rejects when the status is another one. */
  page(path: string, asking?: Asking & { readonly status?: number }): Promise<string>;
  /** Signs in. Resolves to the value of the cookie. */
  signIn(key: string): Promise<string>;
  /** Confirms an action as the operator of this session. Resolves to the address of the redirect. */
  confirm(path: string, session: string): Promise<string>;
  prepare(): Promise<void>;
  close(): Promise<void>;
};

export const ORIGIN = 'http://127.0.0.1:8080';

export async function createTestDashboard(
  url: string,
  {
    clock = systemClock,
    states = () => null,
    env = { CHANDLER_PLAN: 'pro' },
  }: {
    readonly clock?: Clock;
    readonly states?: () => readonly State[] | null;
    /** Settings besides the address of the database; by default the plan `pro`. */
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Promise<TestDashboard> {
  const config = parseConfig({ DATABASE_URL: url, ...env });
  if (!('ok' in config)) throw new Error(config.problems.join('\n'));
  let lines = '';
  const log = createLog({
    level: 'debug',
    write: (line) => {
      lines += line;
    },
  });
  const app = await openApp(config.ok, { clock, log, schema: 'require', connections: 5 });
  const errors: unknown[] = [];
  const handler = openDashboard({ app, states, hasDocs: true, onError: (error) => void errors.push(error) });
  const ask = (path: string, asking: Asking = {}) => {
    const { address = '127.0.0.1', headers = {}, session, form } = asking;
    const all = new Headers({ host: new URL(ORIGIN).host, ...headers });
    if (session !== undefined) all.set('cookie', `chandler_session=${session}`);
    const body = form === undefined ? null : String(new URLSearchParams(form));
    // As browsers send it.
    if (body !== null) {
      all.set('content-type', 'application/x-www-form-urlencoded');
      if (!all.has('transfer-encoding')) all.set('content-length', String(body.length));
    }
    const init = body === null ? { headers: all } : { headers: all, method: 'POST', body };
    return handler(new Request(new URL(path, ORIGIN), init), { address, target: path });
  };
  const page = async (path: string, { status = 200, ...asking }: Asking & { readonly status?: number } = {}) => {
    const answer = await ask(path, asking);
    const text = await answer.text();
    if (answer.status !== status)
      throw new Error(`${path}: ${answer.status}: ${text.slice(0, 2_000)} ${String(errors)}`);
    return text;
  };
  return {
    ...{ app, handler, errors, ask, page, log: () => lines },
    signIn: async (key) => {
      const answer = await ask('/ui/sign-in', { form: { key, next: '/' } });
      const session = /chandler_session=([\w-]+)/.exec(answer.headers.get('set-cookie') ?? '')?.[1];
      if (session === undefined) throw new Error(`not signed in: ${answer.status}`);
      return session;
    },
    confirm: async (path, session) => {
      const answer = await ask(path, { session, form: fieldsIn(await page(path, { session })) });
      if (answer.status !== 303) throw new Error(`${path}: ${answer.status}: ${await answer.text()}`);
      return answer.headers.get('location')!;
    },
    prepare: handler.prepare,
    close: async () => {
      await handler.close();
      await app.close();
    },
  };
}

/** The hidden fields of the form of a page, as a browser sends them. */
export function fieldsIn(page: string): Record<string, string> {
  const main = page.slice(page.indexOf('<main'));
  const fields = Array.from(main.matchAll(/type="hidden" name="(\w+)" value="([^"]+)"/g), ([, name, value]) => [
    name!,
    value!,
  ]);
  return { ...(Object.fromEntries(fields) as Record<string, string>), token: formTokenIn(page) };
}

/** The hidden token in the forms of a page. */
export function formTokenIn(page: string): string {
  const token = /name="token" value="([^"]+)"/.exec(page)?.[1];
  if (token === undefined) throw new Error('the page has no form that changes something');
  return token;
}

/** Creates the key of an operator, or one with other terms. */
export async function createKey(sql: Sql, terms: Partial<ApiKeyTerms> = {}): Promise<{ key: string; prefix: string }> {
  const { key, prefix, hash } = makeApiKey();
  const all = { name: 'Ada', plan: 'unlimited', requestsPerMonth: null, requestsPerSecond: null, expiresAt: null };
  await createApiKey(sql, { ...all, isOperator: true, ...terms }, { prefix, hash, now: systemClock.now() });
  return { key, prefix };
}
