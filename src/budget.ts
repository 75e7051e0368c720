/** The quota of the configured account: put together once here, for whoever asks upstream and for whoever only looks. */
import type { App } from './app.ts';
import { systemClock } from './clock.ts';
import { effectiveLimits } from './config.ts';
import type { PlanName } from './contract/plans.ts';
import { accountIdOf } from './ingest/account.ts';
import { freshnessPerDay, HEADROOM } from './quota/freshness.ts';
import { createQuota } from './quota/ledger.ts';
import type { Limits, Quota } from './quota/quota.ts';
import { setAsideAt } from './quota/set-aside.ts';
import { readAccount } from './store/account.ts';

export type Budget = {
  readonly accountId: string;
  readonly plan: PlanName;
  /** `assumed`: there is a key, and nobody has asked upstream yet which plan it has. */
  readonly planSource: 'configured' | 'account' | 'assumed';
  readonly limits: Limits;
  readonly quota: Quota;
};

/** Of the account that the configuration names, as far as it is known. Asks upstream nothing. */
export async function readBudget(app: App): Promise<Budget> {
  const { config, database } = app;
  const accountId = accountIdOf(config.apiKey, config.baseUrl);
  const saved = await readAccount(database.sql, accountId);
  const isTold = saved !== null && saved.checkedAt !== null;
  const plan = config.plan ?? saved?.plan ?? 'free';
  const planSource = config.plan !== null ? 'configured' : isTold ? 'account' : 'assumed';
  const limits = effectiveLimits(plan, config);
  return { accountId, plan, planSource, limits, quota: quotaOf(app, { accountId, limits }) };
}

/** The ledger of one account, as every process of this installation must see it. */
export function quotaOf(
  app: App,
  { accountId, limits }: { readonly accountId: string; readonly limits: Limits },
): Quota {
  const { config, clock, database } = app;
  return createQuota({
    sql: database.sql,
    clock,
    accountId,
    limits,
    perMonthFixed: config.limits.perMonth !== undefined,
    setAside: () => app.setAside(),
    useDatabaseClock: clock === systemClock,
    random: Math.random,
  });
}

/** Requests a day that can be planned for the freshness of tracked series: what the other schedules leave. Null = any number. */
export async function readFreshnessPerDay(app: App, { quota }: Pick<Budget, 'quota'>): Promise<number | null> {
  const others = app.needs.filter((need) => need.name !== 'freshness');
  const setAside = (at: number) => setAsideAt(at, others);
  return freshnessPerDay({ state: await quota.state(), setAside, share: HEADROOM });
}
