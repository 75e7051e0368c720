/** The examples of `/docs` on `chandler simulate` work as copied: every one that the plan includes gets an answer. */
import { expect, it } from 'vitest';
import { ENDPOINTS, type EndpointName } from '../../src/contract/interface/endpoints.ts';
import { PLAN_NAMES, type PlanName } from '../../src/contract/plan/plans.ts';
import { createSimulator } from '../../src/simulate.ts';
import { frozenClock } from './conformance.ts';
import { type Copied, copied, send } from './copied.ts';

const ORIGIN = 'http://127.0.0.1:8080';
const clock = frozenClock(Date.UTC(2026, 10, 18, 12, 3, 20));
const KEY = '<your key>';

function simulator(plan: PlanName, seed: number) {
  return createSimulator({
    market: 'made-up',
    seed,
    clock,
    limits: { plan, keys: { [KEY]: plan }, overrides: { pacePerSecond: null } },
    onError: (error) => {
      throw error;
    },
  });
}

/** Operations and tools that the plan does not include. Nothing collects feedback. */
function missingIn(plan: PlanName): string[] {
  const mappings = ['getMappings', 'tool getMappings'];
  const changes = ['getChangelogIDs', 'tool getChangelogIDs', 'getTickersSimple'];
  if (plan === 'free') return [...mappings, ...changes];
  return plan === 'starter' || plan === 'pro' ? mappings : [];
}

/** The operation or the tool that a request calls. */
function nameOf({ address, body }: Copied): string {
  if (body !== undefined) return `tool ${(JSON.parse(body) as { params: { name: string } }).params.name}`;
  const { pathname } = new URL(address);
  const names = Object.keys(ENDPOINTS) as EndpointName[];
  return names.find((name) => patternOf(ENDPOINTS[name].path).test(pathname))!;
}

function patternOf(path: string): RegExp {
  return new RegExp(`^/v1${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`);
}

it.each(PLAN_NAMES.flatMap((plan) => [1, 2, 3].map((seed) => [plan, seed] as const)))(
  'the simulator with the plan %s and the seed %i answers every example that the plan includes',
  async (plan, seed) => {
    const { fetch } = simulator(plan, seed);
    const examples = copied(await (await fetch(new Request(`${ORIGIN}/docs`))).text());
    expect(examples.length).toBeGreaterThan(60);
    const failed: string[] = [];
    for (const example of examples) {
      let answer = await send(example, fetch);
      if (answer.status === 301) answer = await fetch(new Request(new URL(answer.headers.get('location')!, ORIGIN)));
      const text = await answer.text();
      const isGood = answer.status === 200 && (example.body === undefined || !('error' in JSON.parse(text)));
      if (!isGood) failed.push(nameOf(example));
    }
    expect(failed.sort()).toEqual([...missingIn(plan), 'tool submitFeedback'].sort());
  },
);
