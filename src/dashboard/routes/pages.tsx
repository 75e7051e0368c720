/** Answers with a page: a screen in its frame, or an error instead. */
import type { Context } from 'hono';
import { html } from 'hono/html';
import { cannotStore, isDiskFull, isLocked } from '../../store/connection/database-unavailable.ts';
import { ActionFailed } from '../action.ts';
import type { Head } from '../parts/head.tsx';
import { messagePage } from '../parts/message-page.tsx';
import { Page, type PageProps } from '../parts/page.tsx';
import { BadAddress, type DashboardDeps, type ScreenView } from '../screen.ts';
import { doneNotice } from '../screens/done.tsx';
import { SCREENS } from '../screens/screens.ts';
import { type Env, pathOf } from './request.ts';

const MENU = SCREENS.flatMap(({ path, name }) => (name === undefined ? [] : [{ path, name }]));

export type Pages = {
  show(c: Context<Env>, view: ScreenView): Promise<Response>;
  /** For a visitor who may not look yet: shows nothing of the warehouse. */
  showStranger(c: Context<Env>, view: ScreenView): Promise<Response>;
  showError(c: Context<Env>, error: Error): Promise<Response>;
};

export function createPages(deps: DashboardDeps): Pages {
  const { sql, clock, hasDocs } = deps;

  async function show(c: Context<Env>, view: ScreenView): Promise<Response> {
    const { title, body, scripts = [], status = 200, redirect } = view;
    if (redirect !== undefined) return c.redirect(redirect, 303);
    const visitor = c.get('visitor');
    const [head, done] = await Promise.all([readHead(deps), doneNotice(sql, visitor, c.req.query('done'))]);
    const props = { title, body, scripts, visitor, hasDocs, head, done, now: clock.now(), path: pathOf(c), menu: MENU };
    return c.html(documentOf(props), status);
  }

  async function showStranger(c: Context<Env>, view: ScreenView): Promise<Response> {
    const { title, body, status = 200 } = view;
    const nothing = { scripts: [], hasDocs, head: null, done: null, menu: [] };
    const props = { ...nothing, title, body, visitor: { operator: null }, now: clock.now(), path: pathOf(c) };
    return c.html(documentOf(props), status);
  }

  async function showError(c: Context<Env>, error: Error): Promise<Response> {
    try {
      if (error instanceof BadAddress) return await show(c, messagePage('This address is wrong', error.message, 400));
      if (error instanceof ActionFailed) return await show(c, messagePage('This is not possible', error.message, 400));
    } catch (another) {
      return showNothing(c, another);
    }
    return showNothing(c, error);
  }

  /** Uses nothing that must be read. */
  function showNothing(c: Context<Env>, error: unknown): Response | Promise<Response> {
    const isAway = deps.isUnavailable(error);
    if (!isAway) deps.onError(error, c.req.url);
    const nothing = { scripts: [], hasDocs, head: null, done: null, menu: MENU };
    const visitor = c.get('visitor') ?? { operator: null };
    const props = {
      ...(isAway ? awayView(error, c.req.method) : UNEXPECTED),
      ...nothing,
      visitor,
      now: clock.now(),
      path: pathOf(c),
    };
    if (isAway) c.header('Retry-After', '5');
    return c.html(documentOf(props), isAway ? 503 : 500);
  }

  return { show, showStranger, showError };
}

function documentOf(props: PageProps) {
  return html`<!doctype html>${<Page {...props} />}`;
}

/** Without its top, a page still shows the rest. */
async function readHead({ readHead, isUnavailable, onError }: DashboardDeps): Promise<Head | null> {
  return readHead().catch((error: unknown) => {
    if (isUnavailable(error)) throw error;
    onError(error, 'the top of a page');
    return null;
  });
}

/** A page that only shows something tries again automatically. A form is not sent again: its page stays, and says what became of the action. */
function awayView(error: unknown, method: string): ScreenView {
  const title = describeOutage(error);
  const isForm = method === 'POST';
  const body = (
    <div data-unshown={isForm ? undefined : true}>
      <h1>{title}</h1>
      {isForm ? (
        <p>{title === UNREACHED ? MAYBE_DONE : NOT_DONE}</p>
      ) : (
        <p>Chandler cannot show this page until then. Nothing is lost, and the page retries automatically.</p>
      )}
    </div>
  );
  return { title, body };
}

const UNREACHED = 'The database cannot be reached';
const MAYBE_DONE =
  'Your action may have been done or not. When the database is back, check, and repeat the action if it was not done.';
const NOT_DONE = 'Your action was not done, or only partly. Repeat it when the database accepts writes again.';

function describeOutage(error: unknown): string {
  if (isDiskFull(error)) return 'The disk of the database is full';
  if (cannotStore(error)) return 'The database is read-only';
  return isLocked(error) ? 'The database is locked' : UNREACHED;
}

const UNEXPECTED = messagePage(
  'An unexpected error',
  'This is an error in Chandler. The log of the service has the details.',
  400,
);

export function pageNotFound(path: string): ScreenView {
  const message = `There is nothing at ${path.split('?')[0]}. The menu lists all screens.`;
  return messagePage('There is no such page', message, 404);
}
