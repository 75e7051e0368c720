/** The environment as a value: pure, and naming every problem at once. */
import type { BlockList } from 'node:net';
import { RPC_PATH } from './contract/interface/json-rpc.ts';
import { MAX_CANDLES, PLAN_NAMES, PLANS, type PlanName } from './contract/plan/plans.ts';
import { parseProxies } from './core/address.ts';
import { didYouMean } from './core/did-you-mean.ts';
import {
  DEFAULT_REVISIONS_A_DAY,
  DEFAULT_STUCK_AFTER_MS,
  NOTICE_EVENTS,
  type NoticeEvent,
  type Notify,
  parseNoticeEvents,
  parseRevisionsADay,
  parseStuckAfter,
  parseWebhookUrl,
  type Read,
} from './core/notice-settings.ts';
import {
  DEFAULT_KEEP,
  type Keep,
  LEAST_DAYS_OF_FETCHES,
  parseCandlesKept,
  parseKept,
} from './core/retention-settings.ts';
import { misspelt } from './core/setting-suggestions.ts';
import { parseCadence } from './ingest/schedule/cadence.ts';
import { type Cadences, type ScheduleVariable, scheduleVariable } from './ingest/schedule/schedule-plan.ts';
import { SCHEDULE_NAMES } from './ingest/schedule/schedules.ts';
import { LOG_LEVELS, type LogLevel, maskPasswords } from './log.ts';
import type { Limits } from './quota/quota.ts';
import { checkDatabaseUrl, SERVE_DATABASE_URL } from './store/connection/database-url.ts';
import { StoreError } from './store/connection/store-error.ts';

export const AUTH_SCHEMES = ['auto', 'bearer', 'bare'] as const;

/** Connections: more than a browser or a pool of a program opens; a tenth of what the service takes from everybody. */
const MOST_PER_ADDRESS = 200;

export type Config = {
  /** Null: the embedded server, with its data in `home`. */
  readonly databaseUrl: string | null;
  /** Null: what is served is read through `databaseUrl`. */
  readonly serveDatabaseUrl: string | null;
  /** Whether callers of the service have the limits of their plans. */
  readonly serveLimits: boolean;
  /** Whose `X-Forwarded-For` is believed; null: nobody's. */
  readonly trustedProxies: BlockList | null;
  /** At one time, of one address that asks and is no trusted proxy; null: no limit. */
  readonly connectionsPerAddress: number | null;
  /** Null: the queue lives in Postgres. */
  readonly redisUrl: string | null;
  /** As given: relative to the folder the command runs in. */
  readonly home: string;
  /** Ends in `/v1`, without a slash after it. */
  readonly baseUrl: string;
  /** Null: only REST is used. */
  readonly rpcUrl: string | null;
  readonly apiKey: string | null;
  /** Null: there is a key, and `/users/me` says which plan it has. */
  readonly plan: PlanName | null;
  /** Limits set by hand: a field that is absent leaves the plan's, null lifts it. */
  readonly limits: Partial<Limits>;
  /** Null: the plan's. */
  readonly candlesPerRequest: number | null;
  readonly authScheme: (typeof AUTH_SCHEMES)[number];
  /** How often schedules run, where that is set by hand; a schedule that is absent has the plan's cadence. */
  readonly cadences: Cadences;
  readonly listen: { readonly host: string; readonly port: number };
  /** Whether callers without walls may run reading SQL through the tools. */
  readonly serveSql: boolean;
  /** Origins of web pages that may use the tools, besides those of this machine; `*`: all. */
  readonly serveOrigins: readonly string[];
  /** How long each table keeps what it has. */
  readonly keep: Keep;
  /** Null: nobody is told. */
  readonly notify: Notify | null;
  readonly logLevel: LogLevel;
};

export type Environment = Readonly<Record<string, string | undefined>>;

export const FREE_BASE_URL = 'https://api.coinpaprika.com/v1';
export const PAID_BASE_URL = 'https://api-pro.coinpaprika.com/v1';
const RPC_URL = 'https://mcp.coinpaprika.com/json-rpc';

/** Every variable Chandler reads, each described in docs/configuration.md. */
export const VARIABLES = [
  'DATABASE_URL',
  SERVE_DATABASE_URL,
  'REDIS_URL',
  'CHANDLER_HOME',
  'CHANDLER_BASE_URL',
  'CHANDLER_RPC_URL',
  'CHANDLER_API_KEY',
  'CHANDLER_PLAN',
  'CHANDLER_MONTHLY_REQUESTS',
  'CHANDLER_DAILY_REQUESTS',
  'CHANDLER_REQUESTS_PER_SECOND',
  'CHANDLER_CANDLES_PER_REQUEST',
  'CHANDLER_AUTH_SCHEME',
  'CHANDLER_LISTEN',
  'CHANDLER_SERVE_LIMITS',
  'CHANDLER_TRUSTED_PROXIES',
  'CHANDLER_CONNECTIONS_PER_ADDRESS',
  'CHANDLER_SERVE_SQL',
  'CHANDLER_SERVE_ORIGINS',
  'CHANDLER_KEEP_TICKERS',
  'CHANDLER_KEEP_FETCHES',
  'CHANDLER_KEEP_GLOBAL',
  'CHANDLER_KEEP_EXCHANGES',
  'CHANDLER_KEEP_CANDLES',
  'CHANDLER_WEBHOOK_URL',
  'CHANDLER_NOTIFY',
  'CHANDLER_STUCK_AFTER',
  'CHANDLER_REVISIONS_A_DAY',
  'LOG_LEVEL',
  ...SCHEDULE_NAMES.map(scheduleVariable),
] as const;
type Variable = (typeof VARIABLES)[number] | ScheduleVariable;
const WITHOUT_WEBHOOK = 'but there is nobody to tell; set CHANDLER_WEBHOOK_URL as well, or leave it out';

/** The configuration, or one sentence for each thing wrong with it. A variable set to nothing counts as not set. */
export function parseConfig(env: Environment): { readonly ok: Config } | { readonly problems: readonly string[] } {
  const problems: string[] = misspelt(env, VARIABLES);
  const read = <T>(name: Variable, fallback: T, parse: (text: string, name: Variable) => T | Problem): T => {
    const text = env[name]?.trim();
    if (text === undefined || text === '') return fallback;
    const value = parse(text, name);
    if (!(value instanceof Problem)) return value;
    problems.push(value.whole ?? `${name} is ${value.shown ?? quoted(text)}, ${value.sentence}.`);
    return fallback;
  };

  const apiKey = read<string | null>('CHANDLER_API_KEY', null, parseKey);
  const limits: { -readonly [window in keyof Limits]?: number | null } = {};
  const window = (name: Variable, field: keyof Limits, whole: boolean) => {
    const value = read<number | null | undefined>(name, undefined, (text) => parseLimit(text, whole));
    if (value !== undefined) limits[field] = value;
  };
  window('CHANDLER_MONTHLY_REQUESTS', 'perMonth', true);
  window('CHANDLER_DAILY_REQUESTS', 'perDay', true);
  window('CHANDLER_REQUESTS_PER_SECOND', 'perSecond', false);

  const kept = (name: Variable, fallback: number | null, leastDays = 1) =>
    read<number | null>(name, fallback, (text) => orProblem(parseKept(text, leastDays)));
  const keep: Keep = {
    tickers: kept('CHANDLER_KEEP_TICKERS', DEFAULT_KEEP.tickers),
    fetches: kept('CHANDLER_KEEP_FETCHES', DEFAULT_KEEP.fetches, LEAST_DAYS_OF_FETCHES),
    global: kept('CHANDLER_KEEP_GLOBAL', DEFAULT_KEEP.global),
    exchanges: kept('CHANDLER_KEEP_EXCHANGES', DEFAULT_KEEP.exchanges),
    candles: read('CHANDLER_KEEP_CANDLES', DEFAULT_KEEP.candles, (text) => orProblem(parseCandlesKept(text))),
  };

  const webhookUrl = read<string | null>('CHANDLER_WEBHOOK_URL', null, (text) =>
    orWrong(parseWebhookUrl(text), notShown(text)),
  );
  const hasWebhook = (env.CHANDLER_WEBHOOK_URL?.trim() ?? '') !== '';
  const noticed = <T>(name: Variable, fallback: T, parse: (text: string) => Read<T>) =>
    read<T>(name, fallback, (text) => {
      const value = parse(text);
      return hasWebhook || !('ok' in value) ? orWrong(value) : new Problem(WITHOUT_WEBHOOK);
    });
  const notify = {
    events: noticed<readonly NoticeEvent[]>('CHANDLER_NOTIFY', NOTICE_EVENTS, parseNoticeEvents),
    stuckAfterMs: noticed('CHANDLER_STUCK_AFTER', DEFAULT_STUCK_AFTER_MS, parseStuckAfter),
    revisionsADay: noticed('CHANDLER_REVISIONS_A_DAY', DEFAULT_REVISIONS_A_DAY, parseRevisionsADay),
  };

  const cadences: { -readonly [name in keyof Cadences]: string } = {};
  for (const name of SCHEDULE_NAMES) {
    const cadence = read<string | undefined>(scheduleVariable(name), undefined, parseSchedule);
    if (cadence !== undefined) cadences[name] = cadence;
  }

  const baseUrl = read('CHANDLER_BASE_URL', apiKey === null ? FREE_BASE_URL : PAID_BASE_URL, parseBaseUrl);
  const config: Config = {
    databaseUrl: read<string | null>('DATABASE_URL', null, parseDatabaseUrl),
    serveLimits: read('CHANDLER_SERVE_LIMITS', true, (text) => orSwitch(parseOneOf(text.toLowerCase(), SWITCH))),
    trustedProxies: read<BlockList | null>('CHANDLER_TRUSTED_PROXIES', null, (text) => orWrong(parseProxies(text))),
    connectionsPerAddress: read<number | null>('CHANDLER_CONNECTIONS_PER_ADDRESS', MOST_PER_ADDRESS, (text) =>
      parseLimit(text, true),
    ),
    serveDatabaseUrl: read<string | null>(SERVE_DATABASE_URL, null, parseDatabaseUrl),
    redisUrl: read<string | null>('REDIS_URL', null, parseRedisUrl),
    home: read('CHANDLER_HOME', '.chandler', parseFolder),
    baseUrl,
    rpcUrl: read<string | null>('CHANDLER_RPC_URL', rpcUrlOf(baseUrl), parseRpcUrl),
    apiKey,
    plan: read<PlanName | null>('CHANDLER_PLAN', apiKey === null ? 'free' : null, parsePlan),
    limits,
    candlesPerRequest: read<number | null>('CHANDLER_CANDLES_PER_REQUEST', null, parseCandles),
    authScheme: read('CHANDLER_AUTH_SCHEME', 'auto', (text) => parseOneOf(text, AUTH_SCHEMES)),
    cadences,
    listen: read('CHANDLER_LISTEN', { host: '127.0.0.1', port: 8080 }, parseListen),
    serveSql: read<'on' | 'off'>('CHANDLER_SERVE_SQL', 'off', (text) => parseOneOf(text, ['on', 'off'])) === 'on',
    serveOrigins: read<readonly string[]>('CHANDLER_SERVE_ORIGINS', [], parseOrigins),
    keep,
    notify: webhookUrl === null ? null : { url: webhookUrl, ...notify },
    logLevel: read('LOG_LEVEL', 'info', (text) => parseOneOf(text, LOG_LEVELS)),
  };
  return problems.length === 0 ? { ok: config } : { problems };
}

/** What an account on `plan` may ask, after what was set by hand. The limit per day is for use without a key. */
export function effectiveLimits(plan: PlanName, config: Pick<Config, 'limits' | 'apiKey'>): Limits {
  const { requestsPerMonth, anonymousRequestsPerDay, requestsPerSecond } = PLANS[plan];
  const perDay = config.apiKey === null ? anonymousRequestsPerDay : null;
  return { perMonth: requestsPerMonth, perDay, perSecond: requestsPerSecond, ...config.limits };
}

/** How many candles one request can bring, after what was set by hand. */
export function candlesPerRequest(plan: PlanName, config: Pick<Config, 'candlesPerRequest'>): number {
  return config.candlesPerRequest ?? PLANS[plan].candlesPerRequest;
}

/** What is wrong with a value, as the end of a sentence; `shown` replaces the value where that is a secret. */
class Problem {
  readonly sentence: string;
  readonly shown: string | undefined;
  /** Replaces the sentence: somebody else has worded it already. */
  readonly whole: string | undefined;
  constructor(sentence: string, shown?: string, whole?: string) {
    this.sentence = sentence;
    this.shown = shown;
    this.whole = whole;
  }
}

function parseKey(text: string): string | Problem {
  return /^[\x21-\x7e]+$/.test(text)
    ? text
    : new Problem(
        'which has spaces or characters a header cannot carry; give the key alone, as the provider shows it',
        notShown(text),
      );
}

function notShown(text: string): string {
  return `(${text.length} characters, not shown)`;
}

function parsePlan(text: string): PlanName | Problem {
  return parseOneOf<PlanName>(text.toLowerCase(), PLAN_NAMES);
}

function parseOneOf<T extends string>(text: string, allowed: readonly T[]): T | Problem {
  const found = allowed.find((name) => name === text);
  return found ?? new Problem(`which is none of ${allowed.join(', ')}${didYouMean(text, allowed)}`);
}

function parseLimit(text: string, whole: boolean): number | null | Problem {
  if (text === 'unlimited') return null;
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (value > 0 && value <= 1e12 && (!whole || Number.isInteger(value))) return value;
  return new Problem(
    whole ? 'it must be a whole number above 0, or unlimited' : 'it must be a number above 0, or unlimited',
  );
}

function orProblem<T>(read: { readonly kept: T } | { readonly mustBe: string }): T | Problem {
  return 'kept' in read ? read.kept : new Problem(read.mustBe);
}

function orWrong<T>(read: Read<T>, shown?: string): T | Problem {
  return 'ok' in read ? read.ok : new Problem(read.problem, shown);
}

function parseCandles(text: string): number | Problem {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 1 && value <= MAX_CANDLES) return value;
  const most = `it must be a whole number from 1 to ${MAX_CANDLES}`;
  // Asked for more, the upstream refuses the request, and it is counted all the same.
  return new Problem(value > MAX_CANDLES ? `${most}, the most that the upstream answers under any plan` : most);
}

/** As the store will read it: one place knows what a good address is. */
function parseDatabaseUrl(text: string, setting: string): string | Problem {
  try {
    checkDatabaseUrl(text);
    return text;
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return new Problem('', undefined, `${error.of(setting).message}.`);
  }
}

function parseRedisUrl(text: string): string | Problem {
  const url = URL.canParse(text) ? new URL(text) : null;
  const sound = url !== null && /^rediss?:$/.test(url.protocol) && url.hostname !== '' && isDecodable(url.password);
  if (!sound) return new Problem('which is no address of a Redis; write it like redis://host:6379', masked(text));
  if (!/^\/?\d{0,5}$/.test(url.pathname)) {
    return new Problem('which must end with the number of a database, like redis://host:6379/0', masked(text));
  }
  // The client would take whatever stands there for settings of its own.
  if (url.search !== '' || url.hash !== '') return new Problem('which must have no ? and no #', masked(text));
  return text;
}

function isDecodable(part: string): boolean {
  try {
    decodeURIComponent(part);
    return true;
  } catch {
    // A % that is not followed by two hex digits.
    return false;
  }
}

function parseBaseUrl(text: string): string | Problem {
  const url = parseHttpUrl(text);
  if (url instanceof Problem) return url;
  const trimmed = url.replace(/\/+$/, '');
  return trimmed.endsWith('/v1') ? trimmed : new Problem(`which does not end in /v1; write it like ${FREE_BASE_URL}`);
}

function parseHttpUrl(text: string): string | Problem {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    return new Problem('which is no web address; it must start with https:// or http://', masked(text));
  }
  if (url.username !== '' || url.password !== '') {
    return new Problem('which carries a user name or password; leave them out and set CHANDLER_API_KEY', masked(text));
  }
  if (url.search !== '' || url.hash !== '')
    return new Problem('which must end with its path: no ? and no #', masked(text));
  return text;
}

/** The vendor's beside the vendor's REST interface; any other upstream has both at one address: two markets must not be mixed. */
function rpcUrlOf(baseUrl: string): string {
  const { origin } = new URL(baseUrl);
  const isVendor = [FREE_BASE_URL, PAID_BASE_URL].some((url) => new URL(url).origin === origin);
  return isVendor ? RPC_URL : origin + RPC_PATH;
}

/** An address, or `off`. */
function parseRpcUrl(text: string): string | null | Problem {
  if (text.toLowerCase() === 'off') return null;
  const url = parseHttpUrl(text);
  if (!(url instanceof Problem)) return url;
  return new Problem(`${url.sentence}, or off to use REST alone`, url.shown);
}

function parseFolder(text: string): string | Problem {
  return text.startsWith('~') ? new Problem('but ~ is a word of the shell; write the whole path of the folder') : text;
}

/** A cron expression, tidied, or `off`. */
function parseSchedule(text: string): string | Problem {
  if (text.toLowerCase() === 'off') return 'off';
  const parsed = parseCadence(text);
  if ('ok' in parsed) return parsed.ok.cron;
  return new Problem(`${parsed.problem}, or off${didYouMean(text, ['off'])}`);
}

function parseListen(text: string): Config['listen'] | Problem {
  const parts = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+)):(\d{1,5})$/i.exec(text);
  const port = Number(parts?.[3]);
  if (!parts || port > 65_535) {
    return new Problem(
      'which is no host and port; write it like 127.0.0.1:8080, or 0.0.0.0:8080 to be reached from elsewhere',
    );
  }
  return { host: (parts[1] ?? parts[2])!, port };
}

const SWITCH = ['on', 'off'] as const;

function orSwitch(value: (typeof SWITCH)[number] | Problem): boolean | Problem {
  return value instanceof Problem ? value : value === 'on';
}

/** As a browser writes them in `Origin`: scheme, host, and the port where it is not the scheme's own. */
function parseOrigins(text: string): readonly string[] | Problem {
  const origins = text.split(/[\s,]+/).filter((origin) => origin !== '');
  const wrong = origins.find(
    (origin) => origin !== '*' && !(URL.canParse(origin) && new URL(origin).origin === origin),
  );
  if (wrong === undefined) return origins;
  return new Problem(`of which ${quoted(wrong)} is no origin; write it like https://app.example, or * for all`);
}

/** An address that may hold a password, and may be too broken to find it in. */
function masked(text: string): string {
  const at = text.lastIndexOf('@');
  return quoted(at === -1 ? maskPasswords(text) : `***${text.slice(at)}`);
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 120 ? `${text.slice(0, 120)}…` : text);
}
