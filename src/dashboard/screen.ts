/** A screen of the dashboard: an address, and what it shows of the warehouse there. */
import type { BlockList } from 'node:net';
import type { Clock, Instant } from '../clock.ts';
import type { Sql } from '../store/connection/connect.ts';
import type { RequestsByHour } from '../views/dashboard/requests-by-hour.ts';
import type { Action } from './action.ts';
import type { Html } from './html.ts';
import type { Head } from './parts/head.tsx';
import type { Need } from './parts/needs.tsx';
import type { BackfillReport, CheckResult, QuotaReport } from './parts/reports.ts';

export type DashboardDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  /** The facts at the top of every page. */
  readonly readHead: () => Promise<Head>;
  /** The list at the top of the home screen, the worst first. */
  readonly readNeeds: () => Promise<readonly Need[]>;
  readonly readQuota: () => Promise<QuotaReport>;
  /** Null when no backfill has this number. */
  readonly readBackfill: (id: number) => Promise<BackfillReport | null>;
  /** Requests of the last 24 hours. The figures are at most a minute old. */
  readonly readRequestsByHour: () => Promise<RequestsByHour>;
  /** The checks of `chandler doctor` that send no request to the upstream. They take a while, so their results are kept for some time. */
  readonly readChecks: () => Promise<readonly CheckResult[]>;
  /** Whether `/docs` is at the same address as the dashboard. */
  readonly hasDocs: boolean;
  /** The actions of operators, by the name in the address. */
  readonly actions: Readonly<Record<string, Action>>;
  /** A visitor who comes through one of these proxies is not on this machine, wherever the proxy runs. Null when there are none. */
  readonly trustedProxies: BlockList | null;
  /** Limits how fast one address can guess keys. */
  readonly signIns: {
    /** Takes one of the tries of this address. Null when it may try, otherwise milliseconds to wait. */
    take(address: string): number | null;
    /** Call it when the key was right, so that the try does not count. */
    putBack(address: string): void;
  };
  /** Whether the error means that the database cannot be reached now. */
  readonly isUnavailable: (error: unknown) => boolean;
  /** Called with unexpected errors. The visitor sees only that there was one. */
  readonly onError: (error: unknown, url: string) => void;
};

export type ScreenInput = {
  readonly deps: DashboardDeps;
  readonly url: URL;
  /** The last part of the address, if the screen has one: the id of a coin, the number of a backfill. */
  readonly id: string;
  readonly now: Instant;
};

export type ScreenView = {
  readonly title: string;
  readonly body: Html;
  /** Scripts of `client/` that this screen needs besides `page.js`, without their extension. */
  readonly scripts?: readonly string[];
  /** Default: 200. */
  readonly status?: 200 | 400 | 404 | 429;
  /** Sends the visitor to another page that shows it. */
  readonly redirect?: string;
};

export type Screen = {
  /** The path of the address. `:id` stands for the last part. */
  readonly path: string;
  /** Its name in the menu. Without a name, the menu leaves it out. */
  readonly name?: string;
  readonly view: (input: ScreenInput) => Promise<ScreenView>;
};

/** JSON for the script of a page. */
export type DataSource = {
  /** The path of the address. `:id` stands for the last part. */
  readonly path: string;
  readonly read: (input: ScreenInput) => Promise<unknown>;
};

export { BadAddress } from './bad-address.ts';
