/** `/users/me` and `/key/info`: the plan and the usage of the key's holder. Both answer with the same body (decision 7). */

import { INVALID_KEY, KEY_REQUIRED } from '../../contract/answer/errors.ts';
import type { EndpointName } from '../../contract/interface/endpoints.ts';
import type { Access } from '../../contract/plan/access.ts';
import { answerPrivately, refuse } from '../http/answer.ts';
import type { Answer } from '../http/request-input.ts';

export function accountRoutes({ access }: { access: Access }) {
  const account: Answer = async (c) => {
    const info = await access.account(c.get('caller'));
    if (info) return answerPrivately(c, info);
    return refuse(c, 403, c.get('caller').key === null ? KEY_REQUIRED : INVALID_KEY);
  };
  return { getUser: account, getKeyInfo: account } satisfies Partial<Record<EndpointName, Answer>>;
}
