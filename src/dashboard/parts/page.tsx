/** The frame of every page: menu, search, the top, the last action, and the scripts. */
import type { FC } from 'hono/jsx';
import type { Instant } from '../../clock.ts';
import { VERSION } from '../../core/version.ts';
import type { Visitor } from '../access/visitor.ts';
import { ASSETS } from '../assets/assets.ts';
import type { Html } from '../html.ts';
import { type Head, HeadFacts } from './head.tsx';

type MenuEntry = { readonly path: string; readonly name: string };

export type PageProps = {
  readonly title: string;
  readonly menu: readonly MenuEntry[];
  /** The address without its host. */
  readonly path: string;
  readonly visitor: Visitor;
  /** Whether there is a `/docs` to link to. */
  readonly hasDocs: boolean;
  /** Null when it could not be read. */
  readonly head: Head | null;
  readonly now: Instant;
  readonly body: Html;
  readonly scripts: readonly string[];
  /** The action of the visitor on the page before. */
  readonly done: Html | null;
};

export const Page: FC<PageProps> = ({ title, menu, path, visitor, hasDocs, head, now, body, scripts, done }) => (
  <html lang="en">
    <head>
      <meta charset="utf-8" />
      <title>{`${title} · Chandler`}</title>
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <link rel="stylesheet" href={`${ASSETS}style.css`} />
      <link rel="icon" href="data:," />
      {['page', ...scripts].map((name) => (
        <script type="module" src={`${ASSETS}${name}.js`} />
      ))}
    </head>
    <body>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <div id="connection" role="status" hidden />
      <header>
        <div class="wrap bar">
          <strong>
            <a href="/">Chandler</a>
          </strong>
          <nav aria-label="Screens">
            <ul>
              {menu.map((entry) => (
                <li>
                  <a href={entry.path} {...(isAt(path, entry.path) ? { 'aria-current': 'page' } : {})}>
                    {entry.name}
                  </a>
                </li>
              ))}
            </ul>
          </nav>
          <search>
            <form class="search" action="/ui/search">
              <input name="q" type="search" required aria-label="Coin: symbol, name or id" placeholder="Coin" />
              <button type="submit">Find</button>
            </form>
          </search>
        </div>
        {head !== null && <HeadFacts head={head} now={now} />}
      </header>
      <main id="main" class="wrap" tabindex={-1}>
        {done ?? ''}
        {body}
      </main>
      <footer class="wrap">
        <div>
          Chandler {VERSION}. Times are UTC.{' '}
          {hasDocs && (
            <>
              <a href="/docs">API documentation</a>.{' '}
            </>
          )}
          {visitor.operator === null ? (
            <a href={`/ui/sign-in?next=${encodeURIComponent(path)}`}>Sign in to change something</a>
          ) : (
            <SignedIn name={visitor.operator.name} formToken={visitor.operator.formToken} />
          )}
        </div>
      </footer>
    </body>
  </html>
);

const SignedIn: FC<{ readonly name: string; readonly formToken: string }> = ({ name, formToken }) => (
  <form method="post" action="/ui/sign-out">
    <input type="hidden" name="token" value={formToken} />
    Signed in with the key {name}. <button type="submit">Sign out</button>
  </form>
);

function isAt(path: string, entry: string): boolean {
  const here = path.split('?')[0]!;
  return entry === '/' ? here === '/' : here === entry || here.startsWith(`${entry}/`);
}
