/** Signing in and out, and the gate in front of every other page. */
import type { Context, Hono, MiddlewareHandler } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import { isFormToken, operatorOf, SESSION_COOKIE, signIn, signOut } from '../access/session.ts';
import { isFromAllowedSite, isLocalVisitor, isSentByOwnPage } from '../access/visitor.ts';
import { messagePage } from '../parts/message-page.tsx';
import type { DashboardDeps, ScreenView } from '../screen.ts';
import { signInForm } from '../screens/sign-in.tsx';
import type { Pages } from './pages.tsx';
import { type Env, localPath, pathOf, signInPath } from './request.ts';

export function addSignIn(app: Hono<Env>, deps: DashboardDeps, pages: Pages): void {
  const { sql, clock } = deps;
  app.get('/ui/sign-in', (c) => {
    const isUndone = c.req.query('undone') === 'true';
    const body = signInForm({ next: localPath(c.req.query('next') ?? ''), isUndone });
    return pages.showStranger(c, { title: 'Sign in', body });
  });
  app.post('/ui/sign-in', async (c) => {
    const form = await c.req.parseBody();
    const next = localPath(String(form.next ?? ''));
    const address = c.env.peer?.address ?? 'unknown';
    const lateMs = deps.signIns.take(address);
    if (lateMs !== null) {
      c.header('Retry-After', String(Math.ceil(lateMs / 1000)));
      return pages.showStranger(c, messagePage('Too many sign-ins', 'Wait a second, and try again.', 429));
    }
    const session = isSentByOwnPage(c.req.raw.headers) ? await signIn({ sql, clock }, String(form.key ?? '')) : null;
    if (session === null) {
      const body = signInForm({ next, isWrong: true });
      return pages.showStranger(c, { title: 'Sign in', body, status: 400 });
    }
    deps.signIns.putBack(address);
    const isSecure = new URL(c.req.url).protocol === 'https:' || c.req.header('X-Forwarded-Proto') === 'https';
    setCookie(c, SESSION_COOKIE, session.token, {
      ...{ path: '/', httpOnly: true, sameSite: 'Strict', secure: isSecure },
      // A duration, because the browser's clock may differ.
      maxAge: Math.floor((session.expiresAt - clock.now()) / 1000),
    });
    return c.redirect(next, 303);
  });
  app.post('/ui/sign-out', gate(deps), async (c) => {
    if (!(await isValidForm(c))) return pages.show(c, invalidForm(c));
    await signOut({ sql }, getCookie(c, SESSION_COOKIE) ?? '');
    deleteCookie(c, SESSION_COOKIE, { path: '/' });
    return c.redirect('/', 303);
  });
}

/** Lets visitors through who may look, and sets who they are. Shows the sign-in page to everybody else. */
export function gate({ sql, clock, trustedProxies }: DashboardDeps): MiddlewareHandler<Env> {
  return async (c, next) => {
    const { headers } = c.req.raw;
    if (!isFromAllowedSite(headers)) return c.text('pages of other sites may not request this', 403);
    const operator = await operatorOf({ sql, clock }, getCookie(c, SESSION_COOKIE));
    if (operator === null && !isLocalVisitor(c.env.peer, headers, trustedProxies))
      return c.redirect(signInPath(c), 303);
    c.set('visitor', { operator });
    return next();
  };
}

/** Whether the form belongs to this session and was sent by a page of Chandler. */
export async function isValidForm(c: Context<Env>): Promise<boolean> {
  const { operator } = c.get('visitor');
  const { token } = await c.req.parseBody();
  return operator !== null && isSentByOwnPage(c.req.raw.headers) && isFormToken(operator, String(token ?? ''));
}

export function invalidForm(c: Context<Env>): ScreenView {
  const [path] = pathOf(c).split('?');
  const message = `Nothing was changed: the form did not come from this page, or your session has ended. Open ${path} again.`;
  return messagePage('Please confirm again', message, 400);
}
