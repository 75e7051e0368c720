/** What the parts of the service share: its options, its state and its metrics. */
import type { App, AppOverrides } from '../app.ts';
import type { Clock } from '../clock.ts';
import type { Config } from '../config.ts';
import type { Ingestion } from '../ingestion.ts';
import type { FailureLog, Log } from '../log.ts';
import type { Environment } from '../settings.ts';
import type { Instance } from '../store/work/instance.ts';
import type { Metrics } from './health/metrics.ts';
import type { Incidents, Role, ServiceStatus } from './health/service-status.ts';
import type { Market } from './http/market-http.ts';
import type { ServingMetrics } from './http/market-http-metrics.ts';
import type { State } from './notice/states.ts';

export type ServiceOptions = {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  readonly roles: readonly Role[];
  /** `host:pid`. */
  readonly owner: string;
  /** Concurrent requests for backfills, and the same number again for freshness. */
  readonly concurrency: number;
  /** Whether to migrate a shared database to this version's schema. Otherwise the service waits until another process has migrated it. */
  readonly migrate: boolean;
  /** For the audit log: who started the service, with which command and which settings. */
  readonly start?: { readonly actor: string; readonly command: string; readonly env: Environment };
  readonly overrides?: AppOverrides;
  /** Aborted to stop the service. */
  readonly signal: AbortSignal;
  /** Called with the address as soon as there is one. */
  readonly onListening?: (url: string) => void;
  readonly onReady?: () => void;
};

export type ServiceContext = ServiceOptions & {
  readonly status: ServiceStatus;
  /** For failures that occur many times in an outage. */
  readonly failed: FailureLog;
  readonly incidents: Incidents;
  readonly metrics: Metrics;
  readonly served: ServingMetrics;
  /** What is open now, for `/metrics` and the HTTP interface. */
  open: {
    app: App | null;
    ingestion: Ingestion | null;
    market: Market | null;
    /** The services that were alive at the last look. Null before the first look. */
    peers: readonly Instance[] | null;
    /** The states of the last look, as the operator is told them. Null when they are not known now. */
    states: readonly State[] | null;
  };
};

/** What the parts of one session share in addition. */
export type SessionContext = ServiceContext & {
  readonly app: App;
  readonly ingestion: Ingestion;
  /** Aborted when the session ends: the service stops, or the account has another plan. */
  readonly ending: AbortSignal;
};
