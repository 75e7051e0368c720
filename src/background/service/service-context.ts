/** What the parts of the service share: how it was started, how it is, and what it counts. */
import type { App, Surroundings } from '../../app.ts';
import type { Clock } from '../../clock.ts';
import type { Config } from '../../config.ts';
import type { Ingestion } from '../../ingestion.ts';
import type { Log } from '../../log.ts';
import type { Troubles } from '../health/incidents.ts';
import type { Metrics } from '../health/metrics.ts';
import type { Role, ServiceStatus } from '../health/service-status.ts';
import type { Market } from '../http/market-http.ts';
import type { ServingMetrics } from '../http/market-http-metrics.ts';

export type ServeOptions = {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Log;
  readonly roles: readonly Role[];
  /** `host:pid`. */
  readonly owner: string;
  /** Requests under way at once: for backfills, and as many for freshness. */
  readonly concurrency: number;
  /** Brings a shared database to the schema of this version; otherwise it waits until somebody has. */
  readonly migrate: boolean;
  readonly surroundings?: Surroundings;
  /** Aborted to end it. */
  readonly signal: AbortSignal;
  /** Told of the address, when there is one. */
  readonly onListening?: (url: string) => void;
  readonly onReady?: () => void;
};

export type Parts = ServeOptions & {
  readonly status: ServiceStatus;
  readonly troubles: Troubles;
  readonly metrics: Metrics;
  readonly served: ServingMetrics;
  /** What `/metrics` asks, as far as it is open. */
  open: { app: App | null; ingestion: Ingestion | null; market: Market | null };
};
