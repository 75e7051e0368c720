/** "Did you mean …?": the names closest to a misspelt one. */
import { distance } from 'fastest-levenshtein';

/**
 * The `names` that `given` was probably meant to be, nearest first, at most `limit`; none when nothing is close.
 * Case and the difference between `-` and `_` do not count.
 */
export function nearestNames(given: string, names: Iterable<string>, limit = 3): string[] {
  const wanted = plain(given);
  if (wanted === '') return [];
  const tolerated = Math.min(4, Math.max(1, Math.floor(wanted.length / 3)));
  const found: { name: string; far: number }[] = [];
  for (const name of names) {
    // Lengths that differ by more than is tolerated cannot be near: skips most of 50,000 coin ids cheaply.
    if (Math.abs(name.length - wanted.length) > tolerated) continue;
    const other = plain(name);
    // Two letters that changed places are one slip, not two wrong letters.
    const plainly = distance(wanted, other);
    const far = plainly === 2 && isSlipOf(wanted, other) ? 1 : plainly;
    if (far <= tolerated) found.push({ name, far });
  }
  found.sort((a, b) => a.far - b.far || (a.name < b.name ? -1 : 1));
  return found.slice(0, limit).map((f) => f.name);
}

/** ` (did you mean x?)`, or nothing: to be put at the end of a message. */
export function didYouMean(given: string, names: Iterable<string>, limit = 1): string {
  const near = nearestNames(given, names, limit);
  return near.length === 0 ? '' : ` (did you mean ${near.join(' or ')}?)`;
}

/** Is `given` another word only by a slip of the fingers: one letter too few, too many or wrong, or two that changed places? */
export function isSlipOf(given: string, name: string): boolean {
  if (given === name) return false;
  const far = distance(given, name);
  const sorted = (word: string) => [...word].sort().join('');
  return far === 1 || (far === 2 && sorted(given) === sorted(name));
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}
