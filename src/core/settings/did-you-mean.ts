/** "Did you mean …?": the known names that are most similar to a misspelt one. */
import { distance } from 'fastest-levenshtein';

/**
 * At most `limit` of the `names`, the most similar to `given` first; none when nothing is similar.
 * Case, and the difference between `-` and `_`, do not count.
 */
export function nearestNames(given: string, names: Iterable<string>, limit = 3): string[] {
  const wanted = plain(given);
  if (wanted === '') return [];
  const tolerated = Math.min(4, Math.max(1, Math.floor(wanted.length / 3)));
  const found: { name: string; far: number }[] = [];
  for (const name of names) {
    // A cheap test that skips most of 50,000 coin ids.
    if (Math.abs(name.length - wanted.length) > tolerated) continue;
    const other = plain(name);
    // Two swapped letters count as one error.
    const plainly = distance(wanted, other);
    const far = plainly === 2 && isSlipOf(wanted, other) ? 1 : plainly;
    if (far <= tolerated) found.push({ name, far });
  }
  found.sort((a, b) => a.far - b.far || (a.name < b.name ? -1 : 1));
  return found.slice(0, limit).map((f) => f.name);
}

/** ` (did you mean x?)`, or nothing, for the end of a message. */
export function didYouMean(given: string, names: Iterable<string>, limit = 1): string {
  return didYouMeanHint(nearestNames(given, names, limit));
}

/** ` (did you mean x or y?)` of the names that were found; nothing without one. */
export function didYouMeanHint(near: readonly string[]): string {
  return near.length === 0 ? '' : ` (${didYouMeanOr(near, '')})`;
}

/** `did you mean x or y?` of the names that were found; `otherwise` without one. */
export function didYouMeanOr(near: readonly string[], otherwise: string): string {
  return near.length === 0 ? otherwise : `did you mean ${near.join(' or ')}?`;
}

/** Whether `given` differs from `name` by one missing, extra or wrong letter, or by two swapped letters. */
function isSlipOf(given: string, name: string): boolean {
  if (given === name) return false;
  const far = distance(given, name);
  const sorted = (word: string) => [...word].sort().join('');
  return far === 1 || (far === 2 && sorted(given) === sorted(name));
}

/** A sentence for each environment variable that looks like a misspelt one of these `variables`. */
export function misspeltSettings(
  env: Readonly<Record<string, string | undefined>>,
  variables: readonly string[],
): string[] {
  const known = new Set(variables);
  const ours = variables.filter((name) => name.startsWith('CHANDLER_'));
  const rests = new Map(ours.map((name) => [name.slice('CHANDLER_'.length), name]));
  // Other programs have similar variables (LOGLEVEL): these two are reported only where the right one is not set.
  const slips = (['DATABASE_URL', 'REDIS_URL'] as const).flatMap((right) => {
    const slip = (env[right] ?? '') === '' ? Object.keys(env).find((name) => isSlipOf(name, right)) : undefined;
    return slip === undefined ? [] : [`${slip} is not a setting of Chandler (did you mean ${right}?).`];
  });
  const unknown = Object.keys(env)
    .filter((name) => /^chandler_/i.test(name) && !known.has(name) && env[name] !== '')
    .map((name) => {
      const rest = name.slice('CHANDLER_'.length).toUpperCase();
      const [near] = nearestNames(rest, rests.keys(), 1);
      // One word of a name counts, too: KEY for API_KEY.
      const meant = near ?? [...rests.keys()].find((other) => rest !== '' && other.split('_').includes(rest));
      return meant === undefined
        ? `${name} is not a setting of Chandler; there are ${ours.join(', ')}.`
        : `${name} is not a setting of Chandler (did you mean CHANDLER_${meant}?).`;
    });
  return [...slips, ...unknown];
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}
