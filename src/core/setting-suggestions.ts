/** Settings that are written nearly right. */
import { isSlipOf, nearestNames } from './did-you-mean.ts';

/** A sentence for each variable of the environment that was meant to be one of these, and is none. */
export function misspelt(env: Readonly<Record<string, string | undefined>>, variables: readonly string[]): string[] {
  const known = new Set(variables);
  const ours = variables.filter((name) => name.startsWith('CHANDLER_'));
  const rests = new Map(ours.map((name) => [name.slice('CHANDLER_'.length), name]));
  // Others' variables may look alike: only one that stands in place of ours, by a slip, is taken for it (LOGLEVEL is many programs' own).
  const slips = (['DATABASE_URL', 'REDIS_URL'] as const).flatMap((right) => {
    const slip = (env[right] ?? '') === '' ? Object.keys(env).find((name) => isSlipOf(name, right)) : undefined;
    return slip === undefined ? [] : [`${slip} is no setting of Chandler (did you mean ${right}?).`];
  });
  const unknown = Object.keys(env)
    .filter((name) => /^chandler_/i.test(name) && !known.has(name) && env[name] !== '')
    .map((name) => {
      const rest = name.slice('CHANDLER_'.length).toUpperCase();
      const [near] = nearestNames(rest, rests.keys(), 1);
      // Cut short is misspelt, too: KEY is farther from API_KEY than any two words may be.
      const meant = near ?? [...rests.keys()].find((other) => rest !== '' && other.split('_').includes(rest));
      return meant === undefined
        ? `${name} is no setting of Chandler; there are ${ours.join(', ')}.`
        : `${name} is no setting of Chandler (did you mean CHANDLER_${meant}?).`;
    });
  return [...slips, ...unknown];
}
