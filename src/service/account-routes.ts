/** `/users/me` and `/key/info`: what the holder of a key may do, and has done. */
import { Hono } from 'hono';
import type { Access } from '../contract/access.ts';
import { INVALID_KEY, KEY_REQUIRED } from '../contract/errors.ts';
import { ACCOUNT_PATHS } from '../contract/paths.ts';
import { answerPrivately, refuse } from './answer.ts';
import type { ServiceEnv } from './service-env.ts';

export function accountRoutes({ access }: { access: Access }): Hono<ServiceEnv> {
  const routes = new Hono<ServiceEnv>();
  for (const path of ACCOUNT_PATHS) {
    routes.on(['GET', 'POST'], path, async (c) => {
      const info = await access.account(c.var.caller);
      if (info) return answerPrivately(c, info);
      return refuse(c, 403, c.var.caller.key === null ? KEY_REQUIRED : INVALID_KEY);
    });
  }
  return routes;
}
