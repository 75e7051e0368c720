/** A dashboard over a test database, and an operator who signs in to it. */
import type { Sql } from '../../src/store/connection/connect.ts';
import { type Asking, createKey, createTestDashboard, fieldsIn } from '../support/dashboard.ts';
import { createTestDatabase } from '../support/database.ts';

export type CoinWorld = {
  readonly sql: Sql;
  get(
    path: string,
    cookie?: string,
  ): Promise<{ readonly status: number; readonly location: string | null; readonly text: string }>;
  /** Signs in with a new key. Resolves to the value of the cookie. */
  signIn(): Promise<string>;
  /** Opens the page of an action and presses its button, or sends another token than the page has. */
  confirm(
    path: string,
    cookie: string,
    guessedToken?: string,
  ): Promise<{ readonly status: number; readonly location: string | null; readonly text: string }>;
  close(): Promise<void>;
};

export async function createCoinWorld(): Promise<CoinWorld> {
  const database = await createTestDatabase();
  const { sql } = database;
  const env = { CHANDLER_BASE_URL: 'http://upstream.test/v1' };
  const dashboard = await createTestDashboard(database.url, { states: () => [], env });
  const send = async (path: string, asking: Asking) => {
    const answer = await dashboard.ask(path, asking);
    if (dashboard.errors.length > 0) throw dashboard.errors[0];
    return { status: answer.status, location: answer.headers.get('location'), text: await answer.text() };
  };
  return {
    sql,
    get: (path, session) => send(path, { session }),
    signIn: async () => dashboard.signIn((await createKey(sql, { name: 'ada', plan: 'free' })).key),
    confirm: async (path, session, guessed) => {
      const { text } = await send(path, { session });
      const form = text.includes('action="/ui/do') ? fieldsIn(text) : {};
      return send(path, { session, form: guessed === undefined ? form : { ...form, token: guessed } });
    },
    close: async () => {
      await dashboard.close();
      await database.drop();
    },
  };
}
