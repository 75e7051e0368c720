/** `/users/me` and `/key/info`: what the holder of a key may do, and has done. One body (decision 7). */
import type { Access } from '../contract/access.ts';
import type { EndpointName } from '../contract/endpoints.ts';
import { INVALID_KEY, KEY_REQUIRED } from '../contract/errors.ts';
import { answerPrivately, refuse } from './answer.ts';
import type { Answer } from './asked.ts';

export function accountRoutes({ access }: { access: Access }) {
  const account: Answer = async (c) => {
    const info = await access.account(c.get('caller'));
    if (info) return answerPrivately(c, info);
    return refuse(c, 403, c.get('caller').key === null ? KEY_REQUIRED : INVALID_KEY);
  };
  return { getUser: account, getKeyInfo: account } satisfies Partial<Record<EndpointName, Answer>>;
}
