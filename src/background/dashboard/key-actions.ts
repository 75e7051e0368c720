/** What operators can do with the keys of callers: the same as with `chandler keys create` and `revoke`. */

import type { App } from '../../app.ts';
import { PLAN_NAMES } from '../../contract/plan/plans.ts';
import { parseDate } from '../../contract/time.ts';
import { makeApiKey, UNLIMITED } from '../../core/caller/api-key.ts';
import { formatCounted, formatDay, formatInstant, formatRelative, shellWord } from '../../core/format.ts';
import { DAY } from '../../core/interval.ts';
import { type Action, ActionFailed, type Arguments } from '../../dashboard/action.ts';
import { BadAddress } from '../../dashboard/screen.ts';
import { type ApiKeyTerms, createApiKey, findApiKey, revokeApiKey } from '../../store/callers/api-key.ts';
import { readUsage } from '../../store/callers/api-usage.ts';

const PLANS = [...PLAN_NAMES, UNLIMITED] as const;
const LONGEST_NAME = 100;
const NEXT = '/ui/keys';

export function keyActions(app: App): Readonly<Record<string, Action>> {
  return {
    'create-key': (given) => createKey(app, given),
    'revoke-key': (given) => revokeKey(app, given),
  };
}

/** Parameters: `plan`, `name`, `operator=true`, and `expires`: a date, or days from now like `90d`. */
async function createKey({ clock, database: { sql } }: App, given: Arguments): ReturnType<Action> {
  const terms = readTerms(given, clock.now());
  const { name, plan, isOperator, expiresAt } = terms;
  return {
    question: isOperator ? 'Create a key for an operator?' : 'Create a key for a caller?',
    verb: 'Create the key',
    sentences: [
      name === null ? 'The key has no name.' : `The key is for ${name}.`,
      plan === UNLIMITED ? 'It has no limit.' : `The limits of the plan ${plan} apply.`,
      ...(isOperator ? ['Its holder may view these pages from anywhere, and use their buttons.'] : []),
      expiresAt === null ? 'It does not expire.' : `It expires ${formatDay(expiresAt)}.`,
      'The key is shown once, after you confirm. Chandler stores only its hash.',
    ],
    requests: 0,
    command: commandOf(terms),
    next: NEXT,
    makesSecret: true,
    act: async () => {
      const { key, prefix, hash } = makeApiKey();
      await createApiKey(sql, terms, { prefix, hash, now: clock.now() });
      return { done: [`The key ${prefix} is created.`], secret: key };
    },
  };
}

function readTerms(given: Arguments, now: number): ApiKeyTerms {
  const isOperator = readFlag(given, 'operator');
  const plan = given.get('plan') || (isOperator ? UNLIMITED : '');
  if (!(PLANS as readonly string[]).includes(plan))
    throw new BadAddress(`plan must be one of ${PLANS.join(', ')}, got ${JSON.stringify(plan)}.`);
  const name = (given.get('name') ?? '').trim();
  if (name.length > LONGEST_NAME || /\p{Cc}/u.test(name))
    throw new BadAddress(`name must be one line of at most ${LONGEST_NAME} characters.`);
  const expiresAt = readExpiry(given.get('expires') ?? '', now);
  return { name: name || null, plan, isOperator, expiresAt, requestsPerMonth: null, requestsPerSecond: null };
}

function readFlag(given: Arguments, name: string): boolean {
  const text = given.get(name) ?? 'false';
  if (text !== 'true' && text !== 'false')
    throw new BadAddress(`${name} must be true or false, got ${JSON.stringify(text)}.`);
  return text === 'true';
}

function readExpiry(text: string, now: number): number | null {
  if (text === '') return null;
  const days = /^(\d{1,5})d$/.exec(text)?.[1];
  const at = days !== undefined ? now + Number(days) * DAY : parseDate(text);
  if (Number.isNaN(at))
    throw new BadAddress(`expires must be a date like 2027-01-31, or like 90d, got ${JSON.stringify(text)}.`);
  if (at <= now) throw new BadAddress(`expires must lie in the future; ${text} does not.`);
  return at;
}

function commandOf({ plan, name, isOperator, expiresAt }: ApiKeyTerms): string[] {
  return [
    ...['chandler', 'keys', 'create', '--plan', plan],
    ...(isOperator ? ['--operator'] : []),
    ...(name === null ? [] : ['--name', shellWord(name)]),
    ...(expiresAt === null ? [] : ['--expires', new Date(expiresAt).toISOString()]),
  ];
}

/** Parameter `key`: the first part of a key. Messages never repeat other input, because it may be a whole key. */
async function revokeKey({ clock, database: { sql } }: App, given: Arguments): ReturnType<Action> {
  const prefix = given.get('key') ?? '';
  if (!/^chandler_[0-9A-Za-z]{8}$/.test(prefix))
    throw new BadAddress('key must be the first part of a key, like chandler_1a2B3c4D.');
  const row = await findApiKey(sql, prefix);
  if (row === null) throw new BadAddress(`There is no key ${prefix}. The screen Keys lists all.`);
  if (row.revokedAt !== null) throw new ActionFailed(`${prefix} was already revoked, ${formatInstant(row.revokedAt)}`);
  const use = await readUsage(sql, `key:${row.accountId}`);
  const now = clock.now();
  return {
    question: `Revoke the key ${prefix}?`,
    verb: `Revoke ${prefix}`,
    sentences: [
      `${row.name === null ? 'It has no name' : `It is for ${row.name}`}, plan ${row.plan}, created ${formatRelative(row.createdAt, now)}.`,
      use === null
        ? 'No request was sent with it.'
        : `It was used for ${formatCounted(use.monthSpent - use.monthLeased, 'request')} in the month of ${formatDay(use.month)}.`,
      'Within two seconds, no service accepts it any more. This cannot be undone.',
      ...(row.isOperator ? ['Everyone who signed in here with it is signed out.'] : []),
    ],
    requests: 0,
    command: ['chandler', 'keys', 'revoke', prefix],
    next: NEXT,
    act: async () => {
      if (!(await revokeApiKey(sql, prefix, clock.now())))
        throw new ActionFailed(`somebody else has just revoked ${prefix}`);
      return [`${prefix} is revoked.`];
    },
  };
}
