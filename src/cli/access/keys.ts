/** `chandler keys`: creates, lists, revokes and rotates the keys of this service. */
import type { Command } from 'commander';
import type { Clock, Instant } from '../../clock.ts';
import { PLAN_NAMES } from '../../contract/plan/plans.ts';
import { formatTime } from '../../contract/time.ts';
import { monthStart } from '../../core/calendar.ts';
import { makeApiKey, UNLIMITED } from '../../core/caller/api-key.ts';
import { formatDay, formatInstant, formatRelative } from '../../core/format.ts';
import { didYouMeanOr, nearestNames } from '../../core/settings/did-you-mean.ts';
import {
  type ApiKey,
  type ApiKeyTerms,
  type ApiKeyUse,
  createApiKey,
  findApiKey,
  listApiKeys,
  replaceApiKey,
  revokeApiKey,
} from '../../store/callers/api-key.ts';
import type { Sql } from '../../store/connection/connect.ts';
import { limitOf, stateOf } from '../../views/operations/api-keys.ts';
import { choice, parsePositiveInteger } from '../input/options.ts';
import { parseDuration, parseTime } from '../input/time.ts';
import { number, printTable, text, whole } from '../output/table.ts';
import type { Answer, CommandContext } from '../shell/context.ts';
import { CommandFailed, UsageError } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';

type CreateOptions = {
  readonly plan?: string;
  readonly operator?: boolean;
  readonly name?: string;
  readonly expires?: Instant;
  readonly monthlyRequests?: number;
  readonly requestsPerSecond?: number;
};

const PLANS = [...PLAN_NAMES, UNLIMITED] as const;

export function keysCommand(program: Command, context: CommandContext): void {
  const keys = program
    .command('keys')
    .description('manage the API keys for callers of this service: create, list, revoke, rotate');
  createCommand(keys, context);
  listCommand(keys, context);
  revokeCommand(keys, context);
  rotateCommand(keys, context);
}

function createCommand(keys: Command, context: CommandContext): void {
  const command = keys
    .command('create')
    .description('create a key and show it once')
    .option(
      '--plan <plan>',
      `the plan whose limits apply: ${PLANS.join(', ')} (default with --operator: ${UNLIMITED})`,
      choice(PLANS),
    )
    .option('--operator', 'its holder may also look at the dashboard from anywhere, and act on it')
    .option('--name <text>', 'who holds the key', parseName)
    .option(
      '--expires <when>',
      'when it expires: a date, a date-time with its zone, or a time from now like 90d',
      (when) => parseExpiry(when, context.clock.now()),
    )
    .option('--monthly-requests <n>', 'replaces the monthly limit of the plan', parsePositiveInteger)
    .option('--requests-per-second <n>', 'replaces the rate limit of the plan', parsePositiveInteger);
  context.answer(
    command,
    async ({ database: { sql }, clock }, options: CreateOptions) => {
      const { operator = false, plan = operator ? UNLIMITED : undefined } = options;
      if (plan === undefined) {
        throw new UsageError(`Choose the plan whose limits apply: --plan ${PLANS.join(' | ')}; or --operator.`);
      }
      const terms: ApiKeyTerms = {
        name: options.name ?? null,
        plan,
        isOperator: operator,
        requestsPerMonth: options.monthlyRequests ?? null,
        requestsPerSecond: options.requestsPerSecond ?? null,
        expiresAt: options.expires ?? null,
      };
      return shownOnce(await create(sql, terms, clock.now()));
    },
    { schema: 'require', changes: true },
  );
}

function listCommand(keys: Command, context: CommandContext): void {
  const command = keys
    .command('list')
    .description('show the valid keys, and what each one has used this month')
    .option('--all', 'also show revoked and expired keys');
  context.answer(command, async ({ database: { sql }, clock }, { all = false }: { readonly all?: boolean }) => {
    const now = clock.now();
    const rows = await listApiKeys(sql, { month: monthStart(now), all, now });
    return {
      json: () => rows.map((row) => ({ ...asJson(row), ...useAsJson(row) })),
      text: (out) => printKeys(out, rows, now, all),
    };
  });
}

const KEY_ARGUMENT = 'the first part of the key, as the list shows it (chandler_1a2B3c4D)';

function revokeCommand(keys: Command, context: CommandContext): void {
  const command = keys
    .command('revoke')
    .description('revoke a key: within two seconds, no service accepts it any more')
    .argument('<key>', KEY_ARGUMENT, parsePrefix);
  context.answer(
    command,
    async ({ database: { sql }, clock }, prefix: string) => {
      const found = await theKey(sql, prefix);
      if (!(await revokeApiKey(sql, prefix, clock.now()))) {
        throw new CommandFailed(`${prefix} was already revoked, ${formatInstant(found.revokedAt!)}`);
      }
      const row = await theKey(sql, prefix);
      return { json: () => asJson(row), text: (out) => out.write(`${prefix} is revoked.\n`) };
    },
    { schema: 'require', changes: true },
  );
}

function rotateCommand(keys: Command, context: CommandContext): void {
  const command = keys
    .command('rotate')
    .description('replace a key by a new one with the same plan and limits')
    .argument('<key>', KEY_ARGUMENT, parsePrefix)
    .option(
      '--keep <time>',
      'how long the old key stays valid, like 1d (default: Chandler revokes it at once)',
      parseDuration,
    );
  context.answer(
    command,
    async (app, prefix: string, { keep = 0 }: { readonly keep?: number }) => {
      const { json, text } = shownOnce(await rotate(app.database.sql, prefix, keep, app.clock));
      const fate = keep === 0 ? 'is revoked' : `stays valid until ${formatInstant(app.clock.now() + keep)}`;
      return {
        json,
        text: (out) => {
          text(out);
          out.write(`${prefix} ${fate}.\n`);
        },
      };
    },
    { schema: 'require', changes: true },
  );
}

const LONGEST_NAME = 100;

/** @throws UsageError when it is empty, too long, or more than one line */
function parseName(text: string): string {
  const name = text.trim();
  if (name !== '' && name.length <= LONGEST_NAME && !/\p{Cc}/u.test(name)) return name;
  throw new UsageError(`It must be one line of 1 to ${LONGEST_NAME} characters.`);
}

/** The first part of a key. When the user pastes a whole key, its secret part is dropped and never shown. */
function parsePrefix(text: string): string {
  const match = /^(chandler_[0-9A-Za-z]{8})(_[0-9A-Za-z]*)?$/.exec(text.trim());
  if (match) return match[1]!;
  throw new UsageError('Name a key by its first part, like chandler_1a2B3c4D; chandler keys list shows them.');
}

/** A time, or a duration from now. @throws UsageError unless it lies in the future */
function parseExpiry(text: string, now: Instant): Instant {
  const ahead = /^\+?(\d[\d.]*[a-z][\d.a-z]*)$/.exec(text);
  const at = ahead ? now + parseDuration(ahead[1]!) : parseTime(text, now);
  if (at > now) return at;
  throw new UsageError(`It must lie in the future; ${text} is ${formatInstant(at)}.`);
}

type NewKey = { readonly key: string; readonly row: ApiKey };

async function create(sql: Sql, terms: ApiKeyTerms, now: Instant): Promise<NewKey> {
  const { key, prefix, hash } = makeApiKey();
  return { key, row: await createApiKey(sql, terms, { prefix, hash, now }) };
}

/** @throws CommandFailed when the old key was replaced or revoked, or has expired */
async function rotate(sql: Sql, prefix: string, keepMs: number, clock: Clock): Promise<NewKey> {
  const old = await theKey(sql, prefix);
  const now = clock.now();
  const instead = 'create a new one with chandler keys create';
  if (old.replacedBy !== null) throw new CommandFailed(`${prefix} was replaced by ${old.replacedBy}; rotate that one`);
  if (old.revokedAt !== null) {
    throw new CommandFailed(`${prefix} was revoked ${formatInstant(old.revokedAt)}; ${instead}`);
  }
  if (old.expiresAt !== null && old.expiresAt <= now) {
    throw new CommandFailed(`${prefix} expired ${formatInstant(old.expiresAt)}; ${instead}`);
  }
  const { key, prefix: newPrefix, hash } = makeApiKey();
  // In one transaction, because an old key without a new one would lock its holder out.
  const row = await sql.begin(async (tx) => {
    const { name, plan, requestsPerMonth, requestsPerSecond, expiresAt, isOperator } = old;
    const terms = { name, plan, requestsPerMonth, requestsPerSecond, expiresAt, isOperator };
    const created = await createApiKey(tx, terms, { prefix: newPrefix, hash, now });
    await replaceApiKey(tx, prefix, { by: created.id, until: now + keepMs, now });
    return created;
  });
  return { key, row };
}

/** @throws UsageError when the key does not exist; the error names the most similar keys */
async function theKey(sql: Sql, prefix: string): Promise<ApiKey> {
  const row = await findApiKey(sql, prefix);
  if (row !== null) return row;
  const all = await listApiKeys(sql, { month: 0, all: true, now: 0 });
  const near = nearestNames(
    prefix,
    all.map((key) => key.prefix),
  );
  throw new UsageError(`There is no key ${prefix}; ${didYouMeanOr(near, 'chandler keys list --all shows all keys.')}`);
}

function shownOnce({ key, row }: NewKey): Answer {
  return {
    json: () => ({ key, ...asJson(row) }),
    text: (out) =>
      out.write(
        `${key}\n\nCopy the key now: Chandler stores only its hash and cannot show it again. Its name is ${row.prefix}.\n`,
      ),
  };
}

function asJson(row: ApiKey) {
  const { prefix, name, plan, isOperator, requestsPerMonth, requestsPerSecond } = row;
  return {
    ...{ prefix, name, plan, isOperator, requestsPerMonth, requestsPerSecond },
    createdAt: formatTime(row.createdAt),
    expiresAt: timeOrNull(row.expiresAt),
    revokedAt: timeOrNull(row.revokedAt),
    replacedBy: row.replacedBy,
  };
}

function useAsJson({ thisMonth, leased, lastSeenAt }: ApiKeyUse) {
  return { thisMonth, leased, lastSeenAt: timeOrNull(lastSeenAt) };
}

function timeOrNull(at: Instant | null): string | null {
  return at === null ? null : formatTime(at);
}

function printKeys(out: Output, rows: readonly ApiKeyUse[], now: Instant, all: boolean): void {
  if (rows.length === 0) {
    out.write(`There are no ${all ? '' : 'valid '}keys; create one with chandler keys create.\n`);
    return;
  }
  printTable(out, rows, [
    whole('key', (row) => row.prefix),
    text('name', (row) => row.name),
    whole('plan', (row) => row.plan),
    text('for', (row) => (row.isOperator ? 'operator' : 'caller')),
    number('this month', (row) => row.thisMonth),
    number('leased', (row) => row.leased),
    number('limit', limitOf),
    whole('created', (row) => formatDay(row.createdAt)),
    text('state', (row) => stateOf(row, now)),
    text('last used', ({ lastSeenAt }) => (lastSeenAt === null ? 'never' : formatRelative(lastSeenAt, now))),
  ]);
}
