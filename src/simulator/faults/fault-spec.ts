/** Which faults the simulator injects, and how often: `429:0.02,reset:0.01`, `all:0.05`, `lies:0.02`, `seed=7`. */
import { didYouMean } from '../../core/settings/did-you-mean.ts';

/**
 * Answers that look normal, with status 200, and are false. A client needs its own knowledge, or another answer, to detect them. The simulator
 * returns each lie only once (`lie-history.ts`), because no client could detect an upstream that repeats the same lie for ever.
 */
export const LIES = [
  /** Candles of another interval than the requested one. */
  'wrong-interval',
  /** Candles of another coin than the requested one. */
  'other-coin',
  /** All values are null. */
  'all-null',
  /** All values are 0. */
  'all-zero',
  /** All candles have the values of one of them. */
  'constant',
  /** All values are a million times as large, or a thousandth. */
  'scaled',
  /** Each candle has the values of the one a day before, or after. */
  'shifted-day',
  /** Every second candle is missing. */
  'thinned',
  /** The second half of the candles is missing. */
  'half',
  /** `Date` is 1970, or some days in the future. */
  'bad-date',
  /** `Age` is ten years. */
  'bad-age',
  /** No `Date`. */
  'no-date',
] as const;

/** The names of the faults, and what a client sees of each. */
export const FAULT_NAMES = [
  /** 429 with `Retry-After: 1`. */
  '429',
  /** 429 without `Retry-After`. */
  '429-silent',
  /** 402 with the text that the history of the plan begins a day ago, under any plan. The text is false, so `all` does not include it. */
  '402-history-limit',
  /** 402 as if the quota of the month were exhausted. */
  '402-spent',
  /** 500 with a JSON error. */
  '500',
  /** 502 with a page of HTML. */
  '502',
  /** The connection is cut. */
  'reset',
  /** No response until the client aborts the request. */
  'hang',
  /** Only a part of the JSON. */
  'truncated',
  /** 200 and no candles. Returned once, like the lies. */
  'empty',
  /** Some candles twice. */
  'duplicates',
  /** A candle twice, the second time with other values. */
  'conflict',
  /** Candles in no order. */
  'unsorted',
  /** Some impossible candles: high below low, negative, off the grid, in the future, text for a number. */
  'impossible',
  /** Values that change later, in candles that have not settled. */
  'revision',
  /** The response of some minutes ago, with an `Age` header. */
  'stale',
  ...LIES,
] as const;
export type FaultName = (typeof FAULT_NAMES)[number];

/** A fault that is returned once: no later answer is false about the same candles. */
export function happensOncePerCandle(name: FaultName): boolean {
  return name === 'empty' || isLie(name);
}

function isLie(name: FaultName): boolean {
  return (LIES as readonly FaultName[]).includes(name);
}

/** Names for several faults. `all` has the faults after which the next attempt may succeed. It excludes those that need a later second opinion. */
const GROUPS = new Map<string, readonly FaultName[]>([
  ['all', FAULT_NAMES.filter((name) => name !== '402-history-limit' && !isLie(name))],
  ['lies', LIES],
]);

export type FaultSpec = {
  readonly seed: number;
  /** Share of requests that get each fault; the shares add up to at most 1. */
  readonly rates: Readonly<Partial<Record<FaultName, number>>>;
  /** After this many faulty attempts of one address in a row, the next one succeeds. After a lie the next one always succeeds. */
  readonly mostInARow: number;
};

export const NO_FAULTS: FaultSpec = { seed: 1, rates: {}, mostInARow: 3 };

type ParsedFaults = { readonly ok: true; readonly spec: FaultSpec } | { readonly ok: false; readonly problem: string };

/**
 * Reads `name:rate` pairs, `all:rate` and `lies:rate` (shared evenly among the faults of the group), `seed=n` and `in-a-row=n`, separated by commas.
 * An empty text, or `none`, means no faults.
 */
export function parseFaultSpec(text: string): ParsedFaults {
  const rates: Partial<Record<FaultName, number>> = {};
  let { seed, mostInARow } = NO_FAULTS;
  for (const part of text.split(',').map((piece) => piece.trim())) {
    if (part === '' || part === 'none') continue;
    const [, name = '', sign, value = ''] = /^([^:=]*)([:=]?)(.*)$/.exec(part)!;
    if (sign === '=' && (name === 'seed' || name === 'in-a-row')) {
      if (!/^\d{1,9}$/.test(value)) return bad(`${name} must be a whole number, got "${value}"`);
      if (name === 'seed') seed = Number(value);
      else mostInARow = Number(value);
      continue;
    }
    const names = GROUPS.get(name) ?? FAULT_NAMES.filter((fault) => fault === name);
    if (names.length === 0) {
      const known = [...GROUPS.keys(), ...FAULT_NAMES, 'seed', 'in-a-row'];
      return bad(`unknown fault "${name}"${didYouMean(name, known)}; there are ${known.slice(0, -2).join(', ')}`);
    }
    const rate = /^\d*\.?\d+$/.test(value) ? Number(value) : NaN;
    if (sign !== ':' || !(rate <= 1)) {
      return bad(`the share of requests with "${name}" must be given as ${name}:0.01, from 0 to 1, got "${part}"`);
    }
    for (const fault of names) rates[fault] = (rates[fault] ?? 0) + rate / names.length;
  }
  const total = Object.values(rates).reduce((sum, rate) => sum + rate, 0);
  if (total > 1 + 1e-9) return bad(`the shares add up to ${total}, which is more than 1`);
  return { ok: true, spec: { seed, rates, mostInARow } };
}

function bad(problem: string): ParsedFaults {
  return { ok: false, problem: `faults: ${problem}` };
}
