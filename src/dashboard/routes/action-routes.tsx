/** Actions: a page shows their price, and they run when the operator confirms. */
import type { Context, Hono } from 'hono';
import { formatCounted } from '../../core/format.ts';
import { beginAudit, endAudit } from '../../store/work/audit.ts';
import { claimForm, isFormId, releaseForm } from '../access/single-use-form.ts';
import type { Intended, ShownOnce } from '../action.ts';
import type { DashboardDeps, ScreenView } from '../screen.ts';
import { Confirm } from '../screens/confirm.tsx';
import { rememberDone } from '../screens/done.tsx';
import { alreadySubmitted, secretView } from '../screens/secret.tsx';
import { type Pages, pageNotFound } from './pages.tsx';
import { type Env, pathOf, signInPath } from './request.ts';
import { invalidForm, isValidForm } from './sign-in-routes.tsx';

function confirmView(c: Context<Env>, intended: Intended, { isDearer = false } = {}): ScreenView {
  const body = <Confirm intended={intended} path={pathOf(c)} visitor={c.get('visitor')} isDearer={isDearer} />;
  return { title: intended.question, body };
}

export function addActions(app: Hono<Env>, deps: DashboardDeps, pages: Pages): void {
  const { sql, clock } = deps;

  /** Undefined when there is no such action. */
  async function intend(c: Context<Env>): Promise<Intended | undefined> {
    const name = c.req.param('action') ?? '';
    return Object.hasOwn(deps.actions, name) ? deps.actions[name]!(new URL(c.req.url).searchParams) : undefined;
  }

  app.get('/ui/do/:action', async (c) => {
    const intended = await intend(c);
    if (intended === undefined) return pages.show(c, pageNotFound(pathOf(c)));
    return pages.show(c, confirmView(c, intended));
  });

  app.post('/ui/do/:action', async (c) => {
    const { operator } = c.get('visitor');
    if (operator === null) return c.redirect(signInPath(c), 303);
    if (!(await isValidForm(c))) return pages.show(c, invalidForm(c));
    const intended = await intend(c);
    if (intended === undefined) return pages.show(c, pageNotFound(pathOf(c)));
    const { command, requests, next } = intended;
    const form = await c.req.parseBody();
    // The price may rise while a page is open. A higher one needs a new confirmation, and so does a form without one.
    if (!(requests <= Number(form.requests ?? 0))) return pages.show(c, confirmView(c, intended, { isDearer: true }));
    const once = intended.makesSecret ? String(form.once ?? '') : null;
    if (once !== null && !isFormId(once)) return pages.show(c, invalidForm(c));
    if (once !== null && !(await claimForm(deps, operator, once))) return pages.show(c, alreadySubmitted(next));
    const actor = `${operator.name} (dashboard)`;
    const price = requests === 0 ? '' : ` # ${formatCounted(requests, 'request')}`;
    let id: number | null = null;
    const end = async (message: string | null) => {
      if (id !== null) await endAudit(sql, { id, endedAt: clock.now(), message });
    };
    let result: readonly string[] | ShownOnce;
    try {
      id = await beginAudit(sql, { at: clock.now(), actor, command: `${command.join(' ')}${price}` });
      result = await intended.act(actor);
    } catch (error) {
      // The error of the action matters more than a failure to record it.
      if (once !== null) await releaseForm(deps, operator, once).catch(() => undefined);
      await end(error instanceof Error ? error.message : String(error)).catch(() => undefined);
      throw error;
    }
    await end(null);
    if ('secret' in result) return pages.show(c, secretView(result, next));
    rememberDone(id, result);
    return c.redirect(`${next}${next.includes('?') ? '&' : '?'}done=${id}`, 303);
  });
}
