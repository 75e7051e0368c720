/** `chandler keys`: who may ask this service: create, list, revoke, rotate. */
import type { Command } from 'commander';
import type { Clock, Instant } from '../../clock.ts';
import { PLAN_NAMES, planOf } from '../../contract/plan/plans.ts';
import { formatTime } from '../../contract/time.ts';
import { makeApiKey, UNLIMITED } from '../../core/api-key.ts';
import { nearestNames } from '../../core/did-you-mean.ts';
import { monthOf } from '../../service/access/quota-leases.ts';
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
import { parseDuration } from '../input/duration.ts';
import { argument, parseChoice, parsePositiveInteger } from '../input/options.ts';
import { parseTime } from '../input/time.ts';
import { formatCount, formatDay, formatInstant, formatLimit, formatRelative } from '../output/format.ts';
import { printJson } from '../output/json.ts';
import { formatTable } from '../output/table.ts';
import type { CommandContext } from '../shell/context.ts';
import { CommandFailed, EXIT, UsageError } from '../shell/exit.ts';
import type { Output } from '../shell/io.ts';

type JsonOption = { readonly json?: boolean };
type CreateOptions = JsonOption & {
  readonly plan: string;
  readonly name?: string;
  readonly expires?: string;
  readonly monthlyRequests?: number;
  readonly requestsPerSecond?: number;
};

const PLANS = [...PLAN_NAMES, UNLIMITED] as const;
const LONGEST_NAME = 100;

export function keysCommand(program: Command, context: CommandContext): void {
  const keys = program.command('keys').description('who may ask this service: create, list, revoke, rotate keys');
  const { io, clock } = context;
  const withSql = <T>(use: (sql: Sql) => Promise<T>) =>
    context.withApp({ schema: 'require' }, ({ database }) => use(database.sql));
  keys
    .command('create')
    .description('make a key and show it, once')
    .requiredOption('--plan <plan>', `what it may ask: ${PLANS.join(', ')}`, argument(parsePlan))
    .option('--name <text>', 'who has it', argument(parseName))
    .option('--expires <when>', 'refuse it from then on: a date, a date-time with its zone, or from now, like 90d')
    .option('--monthly-requests <n>', "instead of the plan's number", argument(parsePositiveInteger))
    .option('--requests-per-second <n>', "instead of the plan's number", argument(parsePositiveInteger))
    .option('--json', 'print JSON')
    .action(
      context.action(async (options: CreateOptions) => {
        const terms: ApiKeyTerms = {
          name: options.name ?? null,
          plan: options.plan,
          requestsPerMonth: options.monthlyRequests ?? null,
          requestsPerSecond: options.requestsPerSecond ?? null,
          expiresAt: options.expires === undefined ? null : parseExpiry(options.expires, clock.now()),
        };
        const made = await withSql((sql) => make(sql, terms, clock.now()));
        showOnce(io.out, made, options.json);
        return EXIT.done;
      }),
    );
  keys
    .command('list')
    .description('show the keys that are good, and what they have asked this month')
    .option('--all', 'those that were revoked or have expired as well')
    .option('--json', 'print JSON')
    .action(
      context.action(async ({ all = false, json }: JsonOption & { readonly all?: boolean }) => {
        const now = clock.now();
        const rows = await withSql((sql) => listApiKeys(sql, { month: monthOf(now), all, now }));
        if (json)
          printJson(
            io.out,
            rows.map((row) => ({ ...asJson(row), ...useAsJson(row) })),
          );
        else printKeys(io.out, rows, now, all);
        return EXIT.done;
      }),
    );
  keys
    .command('revoke')
    .description('take a key back: it is refused within two seconds')
    .argument('<key>', 'the first part of it, as the list has it (chandler_1a2B3c4D)', argument(parsePrefix))
    .option('--json', 'print JSON')
    .action(
      context.action(async (prefix: string, { json }: JsonOption) => {
        const row = await withSql(async (sql) => {
          const found = await theKey(sql, prefix);
          if (!(await revokeApiKey(sql, prefix, clock.now())))
            throw new CommandFailed(`${prefix} was revoked already, ${formatInstant(found.revokedAt!)}`);
          return theKey(sql, prefix);
        });
        if (json) printJson(io.out, asJson(row));
        else io.out.write(`${prefix} is revoked.\n`);
        return EXIT.done;
      }),
    );
  keys
    .command('rotate')
    .description('make a key that takes the place of another one, with the same terms')
    .argument('<key>', 'the first part of it, as the list has it (chandler_1a2B3c4D)', argument(parsePrefix))
    .option('--keep <time>', 'how long the old one is still good, like 1d (default: not at all)', argument(parseKeep))
    .option('--json', 'print JSON')
    .action(
      context.action(async (prefix: string, { keep = 0, json }: JsonOption & { readonly keep?: number }) => {
        const made = await withSql((sql) => rotate(sql, prefix, keep, clock));
        showOnce(io.out, made, json);
        if (!json) {
          const until = keep === 0 ? 'is revoked' : `is good until ${formatInstant(clock.now() + keep)}`;
          io.out.write(`${prefix} ${until}.\n`);
        }
        return EXIT.done;
      }),
    );
}

type Made = { readonly key: string; readonly row: ApiKey };

async function make(sql: Sql, terms: ApiKeyTerms, now: Instant): Promise<Made> {
  const { key, prefix, hash } = makeApiKey();
  return { key, row: await createApiKey(sql, terms, { prefix, hash, now }) };
}

async function rotate(sql: Sql, prefix: string, keepMs: number, clock: Clock): Promise<Made> {
  const old = await theKey(sql, prefix);
  const now = clock.now();
  if (old.replacedBy !== null) throw new CommandFailed(`${prefix} was replaced by ${old.replacedBy}; rotate that one`);
  if (old.revokedAt !== null)
    throw new CommandFailed(
      `${prefix} was revoked ${formatInstant(old.revokedAt)}; make a new one with chandler keys create`,
    );
  if (old.expiresAt !== null && old.expiresAt <= now)
    throw new CommandFailed(
      `${prefix} expired ${formatInstant(old.expiresAt)}; make a new one with chandler keys create`,
    );
  const { name, plan, requestsPerMonth, requestsPerSecond, expiresAt } = old;
  const { key, prefix: newPrefix, hash } = makeApiKey();
  // Both or neither: an old key without a new one would lock its holder out.
  const row = await sql.begin(async (tx) => {
    const terms = { name, plan, requestsPerMonth, requestsPerSecond, expiresAt };
    const made = await createApiKey(tx, terms, { prefix: newPrefix, hash, now });
    await replaceApiKey(tx, prefix, { by: made.id, until: now + keepMs, now });
    return made;
  });
  return { key, row };
}

/** @throws UsageError with the nearest ones when there is none. */
async function theKey(sql: Sql, prefix: string): Promise<ApiKey> {
  const row = await findApiKey(sql, prefix);
  if (row !== null) return row;
  const all = await listApiKeys(sql, { month: 0, all: true, now: 0 });
  const near = nearestNames(
    prefix,
    all.map((key) => key.prefix),
  );
  const hint = near.length > 0 ? `did you mean ${near.join(' or ')}?` : 'chandler keys list --all has them.';
  throw new UsageError(`There is no key ${prefix}; ${hint}`);
}

function showOnce(out: Output, { key, row }: Made, json = false): void {
  if (json) printJson(out, { key, ...asJson(row) });
  else
    out.write(
      `${key}\n\nThis is shown once: only its fingerprint is kept. ${row.prefix} is how it is called from now on.\n`,
    );
}

function asJson({
  prefix,
  name,
  plan,
  requestsPerMonth,
  requestsPerSecond,
  createdAt,
  expiresAt,
  revokedAt,
  replacedBy,
}: ApiKey) {
  const time = (at: Instant | null) => (at === null ? null : formatTime(at));
  return {
    prefix,
    name,
    plan,
    requestsPerMonth,
    requestsPerSecond,
    createdAt: time(createdAt),
    expiresAt: time(expiresAt),
    revokedAt: time(revokedAt),
    replacedBy,
  };
}

function useAsJson({ thisMonth, inAdvance, lastSeenAt }: ApiKeyUse) {
  return { thisMonth, inAdvance, lastSeenAt: lastSeenAt === null ? null : formatTime(lastSeenAt) };
}

function printKeys(out: Output, rows: readonly ApiKeyUse[], now: Instant, all: boolean): void {
  if (rows.length === 0) {
    out.write(
      all
        ? 'There is none yet; chandler keys create makes one.\n'
        : 'There is none that is good; chandler keys create makes one.\n',
    );
    return;
  }
  const right = { align: 'right' as const };
  const columns = [
    { title: 'key', isWhole: true },
    { title: 'name' },
    { title: 'plan', isWhole: true },
    { title: 'this month', ...right },
    { title: 'in advance', ...right },
    { title: 'of', ...right },
    { title: 'created', isWhole: true },
    { title: 'state' },
    { title: 'last counted' },
  ];
  const table = rows.map((row) => [
    row.prefix,
    row.name ?? '–',
    row.plan,
    formatCount(row.thisMonth),
    formatCount(row.inAdvance),
    limitOf(row),
    formatDay(row.createdAt),
    stateOf(row, now),
    row.lastSeenAt === null ? 'never' : formatRelative(row.lastSeenAt, now),
  ]);
  out.write(formatTable(columns, table, out.columns()));
}

function limitOf({ requestsPerMonth, plan }: ApiKey): string {
  if (requestsPerMonth !== null) return formatLimit(requestsPerMonth);
  const named = PLAN_NAMES.find((name) => name === plan);
  return formatLimit(named === undefined ? null : planOf(named).requestsPerMonth);
}

function stateOf({ revokedAt, expiresAt, replacedBy }: ApiKey, now: Instant): string {
  const by = replacedBy === null ? '' : `, replaced by ${replacedBy}`;
  if (revokedAt !== null) return `revoked ${formatDay(revokedAt)}${by}`;
  if (expiresAt === null) return `good${by}`;
  return expiresAt <= now ? `expired ${formatDay(expiresAt)}${by}` : `good until ${formatDay(expiresAt)}${by}`;
}

function parsePlan(text: string): string {
  return parseChoice(text.toLowerCase(), PLANS);
}

function parseName(text: string): string {
  const name = text.trim();
  if (name !== '' && name.length <= LONGEST_NAME && !/\p{Cc}/u.test(name)) return name;
  throw new UsageError(`It must be a text of 1 to ${LONGEST_NAME} characters in one line.`);
}

/** Of a key that was pasted whole only the first part is used, and never shown again. */
function parsePrefix(text: string): string {
  const match = /^(chandler_[0-9A-Za-z]{8})(_[0-9A-Za-z]*)?$/.exec(text.trim());
  if (match) return match[1]!;
  throw new UsageError('A key is called by its first part, like chandler_1a2B3c4D; chandler keys list has them.');
}

function parseKeep(text: string): number {
  return parseDuration(text);
}

function parseExpiry(text: string, now: Instant): Instant {
  const ahead = /^\+?(\d[\d.a-z]*)$/.exec(text);
  let at: Instant;
  try {
    at = ahead && !/^\d+$/.test(text) ? now + parseDuration(ahead[1]!) : parseTime(text, now);
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(`--expires '${text}' is no time. ${error.message}`);
    throw error;
  }
  if (at > now) return at;
  throw new UsageError(`--expires must lie ahead; ${text} is ${formatInstant(at)}.`);
}
