/** Figures of work in turns: each round does every kind of work once, so that other load on the machine affects all of them. */
import { performance } from 'node:perf_hooks';

/** Milliseconds that `work` took. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** `0.41 (0.39–0.44)`: the median with the extremes of the rounds. */
export function spread(values: readonly number[], digits = 2): string {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return `${median(values).toFixed(digits)} (${least.toFixed(digits)}–${most.toFixed(digits)})`;
}

export function verdict(isMet: boolean): string {
  return isMet ? 'PASS' : 'FAIL';
}

export function thousands(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** One figure per line, with aligned names. */
export function table(title: string, rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return [title, ...rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`)].join('\n');
}
