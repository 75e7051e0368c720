/** The configuration: the environment as a value. Parsing is pure, and reports every problem at once. */
import type { BlockList } from 'node:net';
import { PLANS, type PlanName } from './contract/plan/plans.ts';
import type { ListenAddress } from './core/settings/listen-settings.ts';
import type { Notify } from './core/settings/notice-settings.ts';
import type { Retention } from './core/settings/retention-settings.ts';
import { type Cadences, scheduleVariable } from './ingest/schedule/schedule-plan.ts';
import { SCHEDULE_NAMES } from './ingest/schedule/schedules.ts';
import type { Address, S3Settings } from './lake/destination/address.ts';
import type { LogLevel } from './log.ts';
import type { Limits } from './quota/quota.ts';
import {
  type AuthSetting,
  type Environment,
  FREE_BASE_URL,
  PAID_BASE_URL,
  readSettings,
  rpcUrlOf,
  type Settings,
} from './settings.ts';

export type Config = {
  /** Null when Chandler runs the embedded server, with its data in `home`. */
  readonly databaseUrl: string | null;
  /** The database that `serve` reads. Null when it is `databaseUrl`. */
  readonly serveDatabaseUrl: string | null;
  /** Whether callers of the service are limited by their plans. */
  readonly serveLimits: boolean;
  /** The proxies whose `X-Forwarded-For` the service trusts. Null when there are none. */
  readonly trustedProxies: BlockList | null;
  /** Concurrent connections of one address that is not a trusted proxy. Null when there is no limit. */
  readonly connectionsPerAddress: number | null;
  /** Null when the queue lives in Postgres. */
  readonly redisUrl: string | null;
  /** The data folder, as given: relative to the working directory. */
  readonly home: string;
  /** Ends in `/v1`, without a slash after it. */
  readonly baseUrl: string;
  /** Null when only REST is used. */
  readonly rpcUrl: string | null;
  readonly apiKey: string | null;
  /** Null when `/users/me` decides which plan the key has. */
  readonly plan: PlanName | null;
  /** Configured limits. An absent field keeps the limit of the plan, null lifts it. */
  readonly limits: Partial<Limits>;
  /** Null when the plan decides. */
  readonly candlesPerRequest: number | null;
  readonly authScheme: AuthSetting;
  /** Configured cadences of schedules. An absent schedule has the cadence of the plan. */
  readonly cadences: Cadences;
  readonly listen: ListenAddress;
  /** Where the service serves `/health`, `/ready`, `/metrics` and `/backfills`. Null when it serves them at `listen`, with everything else. */
  readonly operationsListen: ListenAddress | null;
  /** Whether callers without a history limit may run read-only SQL through the tools. */
  readonly serveSql: boolean;
  /** Origins of web pages that may use the tools, in addition to this machine. `*` means all. */
  readonly serveOrigins: readonly string[];
  /** How long each table keeps its rows. */
  readonly keep: Retention;
  /** Where the service writes an attestation each day, and the file with the key that signs it. Null when it writes none. */
  readonly attest: { readonly dir: string; readonly keyFile: string | null } | null;
  /** The datasets that the service keeps up to date as files, and where. Null when there is no lake. */
  readonly lake: { readonly address: Address; readonly datasets: readonly string[] } | null;
  /** How to reach `s3://` addresses of the lake and of exports. */
  readonly s3: S3Settings;
  /** Null when no notices are sent. */
  readonly notify: Notify | null;
  /** Milliseconds. A service that has had work and quota for so long without any result is stuck: for notices, the heartbeat and metrics. */
  readonly stuckAfterMs: number;
  /** The service requests this address every few minutes while it is well. Secret. Null when there is none. */
  readonly heartbeatUrl: string | null;
  readonly logLevel: LogLevel;
};

/** The configuration, or one sentence for each problem. */
export function parseConfig(env: Environment): { readonly ok: Config } | { readonly problems: readonly string[] } {
  const { settings, problems } = readSettings(env);
  return problems.length === 0 ? { ok: configOf(settings) } : { problems };
}

function configOf(settings: Settings): Config {
  const apiKey = settings.CHANDLER_API_KEY;
  const baseUrl = settings.CHANDLER_BASE_URL ?? (apiKey === null ? FREE_BASE_URL : PAID_BASE_URL);
  const rpcUrl = settings.CHANDLER_RPC_URL;
  const attestDir = settings.CHANDLER_ATTEST_DIR;
  const lakeAddress = settings.CHANDLER_LAKE_URL;
  const webhookUrl = settings.CHANDLER_WEBHOOK_URL;
  const notify = {
    events: settings.CHANDLER_NOTIFY,
    revisionsADay: settings.CHANDLER_REVISIONS_A_DAY,
  };
  return {
    databaseUrl: settings.DATABASE_URL,
    serveDatabaseUrl: settings.CHANDLER_SERVE_DATABASE_URL,
    serveLimits: settings.CHANDLER_SERVE_LIMITS === 'on',
    trustedProxies: settings.CHANDLER_TRUSTED_PROXIES,
    connectionsPerAddress: settings.CHANDLER_CONNECTIONS_PER_ADDRESS,
    redisUrl: settings.REDIS_URL,
    home: settings.CHANDLER_HOME,
    baseUrl,
    rpcUrl: rpcUrl === undefined ? rpcUrlOf(baseUrl) : rpcUrl,
    apiKey,
    plan: settings.CHANDLER_PLAN ?? (apiKey === null ? 'free' : null),
    limits: withoutUnset({
      perMonth: settings.CHANDLER_MONTHLY_REQUESTS,
      perDay: settings.CHANDLER_DAILY_REQUESTS,
      perSecond: settings.CHANDLER_REQUESTS_PER_SECOND,
    }),
    candlesPerRequest: settings.CHANDLER_CANDLES_PER_REQUEST,
    authScheme: settings.CHANDLER_AUTH_SCHEME,
    cadences: withoutUnset(
      Object.fromEntries(SCHEDULE_NAMES.map((name) => [name, settings[scheduleVariable(name)] ?? undefined])),
    ),
    listen: settings.CHANDLER_LISTEN,
    operationsListen: settings.CHANDLER_OPERATIONS_LISTEN,
    serveSql: settings.CHANDLER_SERVE_SQL === 'on',
    serveOrigins: settings.CHANDLER_SERVE_ORIGINS,
    keep: retentionOf(settings),
    attest: attestDir === null ? null : { dir: attestDir, keyFile: settings.CHANDLER_ATTEST_KEY },
    lake: lakeAddress === null ? null : { address: lakeAddress, datasets: settings.CHANDLER_LAKE_DATASETS },
    s3: s3SettingsOf(settings),
    notify: webhookUrl === null ? null : { url: webhookUrl, ...notify },
    stuckAfterMs: settings.CHANDLER_STUCK_AFTER,
    heartbeatUrl: settings.CHANDLER_HEARTBEAT_URL,
    logLevel: settings.LOG_LEVEL,
  };
}

export function retentionOf(settings: Settings): Retention {
  return {
    tickers: settings.CHANDLER_KEEP_TICKERS,
    fetches: settings.CHANDLER_KEEP_FETCHES,
    global: settings.CHANDLER_KEEP_GLOBAL,
    exchanges: settings.CHANDLER_KEEP_EXCHANGES,
    candles: settings.CHANDLER_KEEP_CANDLES,
  };
}

/** AWS itself falls back to this region, and other storage accepts it. */
const DEFAULT_REGION = 'us-east-1';

function s3SettingsOf(settings: Settings): S3Settings {
  const [accessKeyId, secretAccessKey] = [settings.AWS_ACCESS_KEY_ID, settings.AWS_SECRET_ACCESS_KEY];
  const endpoint = settings.AWS_ENDPOINT_URL_S3 ?? settings.AWS_ENDPOINT_URL;
  return {
    endpoint,
    region: settings.AWS_REGION ?? settings.AWS_DEFAULT_REGION ?? DEFAULT_REGION,
    // Storage other than AWS seldom has a host name for each bucket.
    pathStyle: (settings.CHANDLER_S3_PATH_STYLE ?? (endpoint === null ? 'off' : 'on')) === 'on',
    credentials:
      accessKeyId === null || secretAccessKey === null
        ? null
        : { accessKeyId, secretAccessKey, sessionToken: settings.AWS_SESSION_TOKEN },
  };
}

/** Only the fields that are set, so that the others do not replace a default. */
function withoutUnset<T extends object>(fields: T): { [name in keyof T]?: Exclude<T[name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as typeof fields;
}

/** The limits of an account on `plan`. Configured limits take precedence. The limit per day applies only without a key. */
export function effectiveLimits(plan: PlanName, config: Pick<Config, 'limits' | 'apiKey'>): Limits {
  const { requestsPerMonth, anonymousRequestsPerDay, requestsPerSecond } = PLANS[plan];
  const perDay = config.apiKey === null ? anonymousRequestsPerDay : null;
  return { perMonth: requestsPerMonth, perDay, perSecond: requestsPerSecond, ...config.limits };
}

/** How many candles one request can return. The configured number takes precedence. */
export function candlesPerRequest(plan: PlanName, config: Pick<Config, 'candlesPerRequest'>): number {
  return config.candlesPerRequest ?? PLANS[plan].candlesPerRequest;
}
