/** Every environment variable that Chandler reads: its default, and how its text becomes a value. */
import { RPC_PATH } from './contract/interface/json-rpc.ts';
import { MAX_CANDLES, PLAN_NAMES } from './contract/plan/plans.ts';
import { parseProxies } from './core/caller/address.ts';
import { parseEndpoint, parseHttpUrl, parseRedisUrl, quoted, wrong } from './core/settings/address-settings.ts';
import { didYouMean, misspeltSettings } from './core/settings/did-you-mean.ts';
import { DEFAULT_LISTEN, parseListen, parseOperationsListen } from './core/settings/listen-settings.ts';
import {
  DEFAULT_REVISIONS_A_DAY,
  DEFAULT_STUCK_AFTER_MS,
  NOTICE_EVENTS,
  parseNoticeEvents,
  parseRevisionsADay,
  parseSecretUrl,
  parseStuckAfter,
} from './core/settings/notice-settings.ts';
import {
  DEFAULT_RETENTION,
  LEAST_DAYS_OF_FETCHES,
  parseCandlesKept,
  parseKept,
} from './core/settings/retention-settings.ts';
import type { ParsedSetting } from './core/settings/setting.ts';
import { parseCadence } from './ingest/schedule/cadence.ts';
import { type ScheduleVariable, scheduleVariable } from './ingest/schedule/schedule-plan.ts';
import { SCHEDULE_NAMES } from './ingest/schedule/schedules.ts';
import { DATASET_NAMES } from './lake/dataset/datasets.ts';
import { type Address, parseAddress } from './lake/destination/address.ts';
import { LOG_LEVELS, type LogLevel } from './log.ts';
import { checkDatabaseUrl, SERVE_DATABASE_URL } from './store/connection/database-url.ts';
import { StoreError } from './store/connection/store-error.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export const FREE_BASE_URL = 'https://api.coinpaprika.com/v1';
export const PAID_BASE_URL = 'https://api-pro.coinpaprika.com/v1';
const RPC_URL = 'https://mcp.coinpaprika.com/json-rpc';

/** No browser and no connection pool of a program opens so many connections. It is a tenth of what the service accepts in all. */
const MOST_PER_ADDRESS = 200;

/** `auto` tries both ways of sending the key. */
export type AuthSetting = 'auto' | 'bearer' | 'bare';
type Parse<T> = (text: string, name: string, env: Environment) => ParsedSetting<T>;
type Setting<T> = { readonly fallback: T; readonly parse: Parse<T> };

/** `fallback`: the value when the variable is not set. */
function setting<T>(fallback: T, parse: Parse<T>): Setting<T> {
  return { fallback, parse };
}

/** Null when the variable is not set. */
function optional<T>(parse: Parse<T>): Setting<T | null> {
  return { fallback: null, parse };
}

/** Undefined when the variable is not set; null when it lifts the limit. */
function limit(isWhole: boolean): Setting<number | null | undefined> {
  return { fallback: undefined, parse: (text) => parseLimit(text, isWhole) };
}

function oneOf<T extends string>(allowed: readonly T[]): Parse<T> {
  return (text) => {
    const found = allowed.find((name) => name === text);
    return found === undefined
      ? wrong(`which is not one of ${allowed.join(', ')}${didYouMean(text, allowed)}`)
      : { ok: found };
  };
}

function anyCase<T>(parse: Parse<T>): Parse<T> {
  return (text, name, env) => parse(text.toLowerCase(), name, env);
}

/** Refuses a setting that has no effect because another one is not set. `off` is always accepted. */
function onlyWith<T>(other: string, what: string, parse: Parse<T>): Parse<T> {
  return (text, name, env) => {
    const read = parse(text, name, env);
    const isUseless = 'ok' in read && read.ok !== 'off' && (env[other] ?? '').trim() === '';
    return isUseless ? wrong(`but there is no ${what}; set ${other} too, or remove this setting`) : read;
  };
}

/** Refuses a setting for notices when there is no webhook. */
function noticed<T>(parse: Parse<T>): Parse<T> {
  return onlyWith('CHANDLER_WEBHOOK_URL', 'webhook', parse);
}

/** Refuses a setting for attestations when there is no folder for them. */
function attested<T>(parse: Parse<T>): Parse<T> {
  return onlyWith('CHANDLER_ATTEST_DIR', 'folder for attestations', parse);
}

/** Refuses a setting for the lake when there is no lake. */
function ofLake<T>(parse: Parse<T>): Parse<T> {
  return onlyWith('CHANDLER_LAKE_URL', 'lake', parse);
}

/** A schedule that writes to a place needs that place. */
function parseOfSchedule(name: string): Parse<string> {
  if (name === 'attest') return attested(parseSchedule);
  return name === 'lake' ? ofLake(parseSchedule) : parseSchedule;
}

/** docs/configuration.md describes each variable. */
const SETTINGS = {
  DATABASE_URL: optional(parseDatabaseUrl),
  [SERVE_DATABASE_URL]: optional(parseDatabaseUrl),
  REDIS_URL: optional(parseRedisUrl),
  CHANDLER_HOME: setting('.chandler', parsePath),
  CHANDLER_BASE_URL: optional(parseBaseUrl),
  CHANDLER_RPC_URL: setting<string | null | undefined>(undefined, parseRpcUrl),
  CHANDLER_API_KEY: optional(parseKey),
  CHANDLER_PLAN: optional(anyCase(oneOf(PLAN_NAMES))),
  CHANDLER_MONTHLY_REQUESTS: limit(true),
  CHANDLER_DAILY_REQUESTS: limit(true),
  CHANDLER_REQUESTS_PER_SECOND: limit(false),
  CHANDLER_CANDLES_PER_REQUEST: optional(parseCandles),
  CHANDLER_AUTH_SCHEME: setting<AuthSetting>('auto', oneOf(['auto', 'bearer', 'bare'])),
  CHANDLER_LISTEN: setting(DEFAULT_LISTEN, (text) => parseListen(text)),
  CHANDLER_OPERATIONS_LISTEN: optional((text, _, env) => parseOperationsListen(text, env.CHANDLER_LISTEN)),
  CHANDLER_SERVE_LIMITS: setting('on', anyCase(oneOf(['on', 'off']))),
  CHANDLER_TRUSTED_PROXIES: optional(parseProxies),
  CHANDLER_CONNECTIONS_PER_ADDRESS: setting<number | null>(MOST_PER_ADDRESS, (text) => parseLimit(text, true)),
  CHANDLER_SERVE_SQL: setting('off', oneOf(['on', 'off'])),
  CHANDLER_SERVE_ORIGINS: setting<readonly string[]>([], parseOrigins),
  CHANDLER_KEEP_TICKERS: setting(DEFAULT_RETENTION.tickers, (text) => parseKept(text)),
  CHANDLER_KEEP_FETCHES: setting(DEFAULT_RETENTION.fetches, (text) => parseKept(text, LEAST_DAYS_OF_FETCHES)),
  CHANDLER_KEEP_GLOBAL: setting(DEFAULT_RETENTION.global, (text) => parseKept(text)),
  CHANDLER_KEEP_EXCHANGES: setting(DEFAULT_RETENTION.exchanges, (text) => parseKept(text)),
  CHANDLER_KEEP_CANDLES: setting(DEFAULT_RETENTION.candles, parseCandlesKept),
  CHANDLER_WEBHOOK_URL: optional(parseSecret),
  CHANDLER_HEARTBEAT_URL: optional(parseSecret),
  CHANDLER_NOTIFY: setting(NOTICE_EVENTS, noticed(parseNoticeEvents)),
  CHANDLER_STUCK_AFTER: setting(DEFAULT_STUCK_AFTER_MS, parseStuckAfter),
  CHANDLER_REVISIONS_A_DAY: setting(DEFAULT_REVISIONS_A_DAY, noticed(parseRevisionsADay)),
  CHANDLER_ATTEST_DIR: optional(parsePath),
  CHANDLER_ATTEST_KEY: optional(attested(parsePath)),
  CHANDLER_LAKE_URL: optional(parseLake),
  CHANDLER_LAKE_DATASETS: setting<readonly string[]>(['candles', 'prices', 'coins'], ofLake(parseDatasets)),
  CHANDLER_S3_PATH_STYLE: optional<'on' | 'off'>(anyCase(oneOf(['on', 'off']))),
  AWS_ACCESS_KEY_ID: optional(asGiven),
  AWS_SECRET_ACCESS_KEY: optional(asGiven),
  AWS_SESSION_TOKEN: optional(asGiven),
  AWS_REGION: optional(asGiven),
  AWS_DEFAULT_REGION: optional(asGiven),
  AWS_ENDPOINT_URL_S3: optional(parseEndpoint),
  AWS_ENDPOINT_URL: optional(parseEndpoint),
  LOG_LEVEL: setting<LogLevel>('info', oneOf(LOG_LEVELS)),
  ...(Object.fromEntries(
    SCHEDULE_NAMES.map((name) => [scheduleVariable(name), optional(parseOfSchedule(name))]),
  ) as Record<ScheduleVariable, Setting<string | null>>),
};

type Variable = keyof typeof SETTINGS;
export type Settings = { readonly [name in Variable]: (typeof SETTINGS)[name] extends Setting<infer T> ? T : never };

/** Every variable that Chandler reads. */
export const VARIABLES = Object.keys(SETTINGS) as readonly Variable[];

/**
 * The value of each variable, and one sentence for each problem: a wrong value, which then counts as not set, or a misspelt name. A
 * variable set to an empty text counts as not set.
 */
export function readSettings(env: Environment): { readonly settings: Settings; readonly problems: readonly string[] } {
  const problems = misspeltSettings(env, VARIABLES);
  const read = (name: Variable): unknown => {
    const { fallback, parse } = SETTINGS[name] as Setting<unknown>;
    const text = env[name]?.trim() ?? '';
    if (text === '') return fallback;
    const result = parse(text, name, env);
    if ('ok' in result) return result.ok;
    const { problem, shown = quoted(text), isWhole = false } = result;
    const separator = problem.startsWith('it must') ? ';' : ',';
    problems.push(isWhole ? problem : `${name} is ${shown}${separator} ${problem}.`);
    return fallback;
  };
  const settings = Object.fromEntries(VARIABLES.map((name) => [name, read(name)])) as Settings;
  return { settings, problems };
}

/** The vendor's RPC address for the vendor's REST address. Any other upstream serves both at one address, so that two markets are never mixed. */
export function rpcUrlOf(baseUrl: string): string {
  const { origin } = new URL(baseUrl);
  const isVendor = [FREE_BASE_URL, PAID_BASE_URL].some((url) => new URL(url).origin === origin);
  return isVendor ? RPC_URL : origin + RPC_PATH;
}

function notShown(text: string): string {
  return `(${text.length} characters, not shown)`;
}

function parseKey(text: string): ParsedSetting<string> {
  if (/^[\x21-\x7e]+$/.test(text)) return { ok: text };
  const problem =
    'which has spaces or characters that a header cannot carry; give the key alone, as the provider shows it';
  return wrong(problem, notShown(text));
}

function parseSecret(text: string): ParsedSetting<string> {
  const read = parseSecretUrl(text);
  return 'ok' in read ? read : wrong(read.problem, notShown(text));
}

function parseLimit(text: string, isWhole: boolean): ParsedSetting<number | null> {
  if (text === 'unlimited') return { ok: null };
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (value > 0 && value <= 1e12 && (!isWhole || Number.isInteger(value))) return { ok: value };
  return wrong(`it must be a ${isWhole ? 'whole ' : ''}number above 0, or unlimited`);
}

function parseCandles(text: string): ParsedSetting<number> {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 1 && value <= MAX_CANDLES) return { ok: value };
  // The upstream refuses larger requests, and counts them too.
  const why = value > MAX_CANDLES ? ', the most that the upstream answers under any plan' : '';
  return wrong(`it must be a whole number from 1 to ${MAX_CANDLES}${why}`);
}

function parseDatabaseUrl(text: string, name: string): ParsedSetting<string> {
  try {
    checkDatabaseUrl(text);
    return { ok: text };
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return { problem: `${error.of(name).message}.`, isWhole: true };
  }
}

function parseBaseUrl(text: string): ParsedSetting<string> {
  const read = parseHttpUrl(text);
  if (!('ok' in read)) return read;
  const trimmed = read.ok.replace(/\/+$/, '');
  return trimmed.endsWith('/v1') ? { ok: trimmed } : wrong(`which does not end in /v1; write it like ${FREE_BASE_URL}`);
}

/** An address, or `off` (null). */
function parseRpcUrl(text: string): ParsedSetting<string | null> {
  if (text.toLowerCase() === 'off') return { ok: null };
  const read = parseHttpUrl(text);
  return 'ok' in read ? read : { ...read, problem: `${read.problem}, or off to use REST alone` };
}

/** The path of a file or a folder. */
function parsePath(text: string): ParsedSetting<string> {
  return text.startsWith('~') ? wrong('but Chandler does not expand ~; write the whole path') : { ok: text };
}

/** Other programs read this value as well, so Chandler does not check it. */
function asGiven(text: string): ParsedSetting<string> {
  return { ok: text };
}

function parseLake(text: string): ParsedSetting<Address> {
  const read = parseAddress(text);
  if (!('ok' in read) || read.ok.kind === 's3') return read;
  const path = parsePath(text);
  return 'ok' in path ? read : path;
}

function parseDatasets(text: string): ParsedSetting<readonly string[]> {
  const names = text.split(/[\s,]+/).filter((name) => name !== '');
  if (names.length === 1 && names[0] === 'all') return { ok: DATASET_NAMES };
  const other = names.find((name) => !DATASET_NAMES.includes(name));
  if (other === undefined) return { ok: DATASET_NAMES.filter((name) => names.includes(name)) };
  return wrong(
    `of which ${quoted(other)} is not a dataset; the datasets are ${DATASET_NAMES.join(', ')}, and all${didYouMean(other, DATASET_NAMES)}`,
  );
}

/** A cron expression, normalised, or `off`. */
function parseSchedule(text: string): ParsedSetting<string> {
  if (text.toLowerCase() === 'off') return { ok: 'off' };
  const read = parseCadence(text);
  return 'ok' in read ? { ok: read.ok.cron } : wrong(`${read.problem}, or off${didYouMean(text, ['off'])}`);
}

/** Origins as a browser writes them: scheme, host, and the port unless it is the default of the scheme. */
function parseOrigins(text: string): ParsedSetting<readonly string[]> {
  const origins = text.split(/[\s,]+/).filter((origin) => origin !== '');
  const isOrigin = (origin: string) => origin === '*' || (URL.canParse(origin) && new URL(origin).origin === origin);
  const other = origins.find((origin) => !isOrigin(origin));
  if (other === undefined) return { ok: origins };
  return wrong(`of which ${quoted(other)} is not an origin; write it like https://app.example, or * for all`);
}
