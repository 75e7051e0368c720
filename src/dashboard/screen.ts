/** What a screen of the dashboard is: an address, and what it shows of the warehouse at that address. */
import type { BlockList } from 'node:net';
import type { Clock, Instant } from '../clock.ts';
import type { Sql } from '../store/connection/connect.ts';
import type { RequestsByHour } from '../views/dashboard/requests-by-hour.ts';
import type { Visitor } from './access/visitor.ts';
import type { Action } from './action.ts';
import type { Html } from './html.ts';
import type { Head } from './parts/head.tsx';
import type { Need } from './parts/needs.tsx';
import type { BackfillReport, CheckResult, QuotaReport } from './parts/reports.ts';

export type DashboardDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  /** What every page shows at its top. */
  readonly readHead: () => Promise<Head>;
  /** What the home screen lists first, the worst first. */
  readonly readNeeds: () => Promise<readonly Need[]>;
  readonly readQuota: () => Promise<QuotaReport>;
  /** Null: there is no backfill of this number. */
  readonly readBackfill: (id: number) => Promise<BackfillReport | null>;
  /** Of the last 24 hours; a minute old at most. */
  readonly readRequestsByHour: () => Promise<RequestsByHour>;
  /** The checks of `chandler doctor` that send no request to the upstream; they take a while, and are kept for another while. */
  readonly readChecks: () => Promise<readonly CheckResult[]>;
  /** What operators may do, by the name in the address. */
  readonly actions: Readonly<Record<string, Action>>;
  /** Whoever comes through one of these does not sit at this machine, wherever the proxy does; null: there are none. */
  readonly trustedProxies: BlockList | null;
  /** How fast one address can guess keys. */
  readonly signIns: {
    /** Takes one of the tries of this address. Null: it may try; else how long it must wait, in ms. */
    take(address: string): number | null;
    /** The key was right: the try does not count. */
    putBack(address: string): void;
  };
  /** Does this error mean that the database cannot be reached for the moment? */
  readonly isUnavailable: (error: unknown) => boolean;
  /** Called with unexpected errors; the visitor sees only that there was one. */
  readonly onError: (error: unknown, url: string) => void;
};

export type ScreenInput = {
  readonly deps: DashboardDeps;
  readonly url: URL;
  /** The last part of the address, where the screen has one: the id of a coin, the number of a backfill. */
  readonly id: string;
  readonly visitor: Visitor;
  readonly now: Instant;
};

export type ScreenView = {
  readonly title: string;
  readonly body: Html;
  /** Scripts of `client/` that this screen needs besides `page.js`, without their extension. */
  readonly scripts?: readonly string[];
  /** Default 200. */
  readonly status?: 200 | 400 | 404 | 429;
  /** Another page shows it: the visitor is sent there. */
  readonly redirect?: string;
};

export type Screen = {
  /** Of the address; `:id` stands for the last part. */
  readonly path: string;
  /** Its name in the menu; without one it is not there. */
  readonly name?: string;
  readonly view: (input: ScreenInput) => Promise<ScreenView>;
};

/** What a script of a page asks for, as JSON. */
export type DataSource = {
  /** Of the address; `:id` stands for the last part. */
  readonly path: string;
  readonly read: (input: ScreenInput) => Promise<unknown>;
};

export { BadAddress } from './bad-address.ts';
