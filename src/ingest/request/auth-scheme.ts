/** How the key is sent: as the setting says, or found out by the first answers and remembered. */
import type { AuthScheme } from '../../upstream/answer.ts';

export type KeyManner = {
  current(): AuthScheme;
  /** After a 403 to a key sent as `used`: true when asking again in another manner is worth a request. */
  refused(used: AuthScheme): boolean;
  /** After any answer that was not a 403: this manner works. */
  accepted(used: AuthScheme): Promise<void>;
  /** For whoever has to say that the key was refused. */
  sent(): KeySent;
};

/** How a key was sent that is refused: by the setting, in all the ways there are, or as it has worked before in this run. */
export type KeySent = 'no key' | 'as set' | 'both ways' | 'as before';

/**
 * `auto` begins with what was remembered, else with Bearer, as the API document says, and tries the other manner once after a
 * 403: what worked for a year may have been changed upstream. Once a manner has worked in this run it is not doubted again.
 */
export function createKeyManner(options: {
  readonly hasKey: boolean;
  readonly configured: 'auto' | AuthScheme;
  readonly known: AuthScheme | null;
  readonly remember: (scheme: AuthScheme) => Promise<void>;
}): KeyManner {
  const { hasKey, configured, remember } = options;
  const isOpen = hasKey && configured === 'auto';
  let scheme: AuthScheme = configured === 'auto' ? (options.known ?? 'bearer') : configured;
  let known = options.known;
  let works = false;
  const refusedAs = new Set<AuthScheme>();
  return {
    current: () => scheme,
    refused: (used) => {
      // Another request has found out meanwhile.
      if (used !== scheme) return true;
      refusedAs.add(used);
      const other = used === 'bearer' ? 'bare' : 'bearer';
      if (!isOpen || works || refusedAs.has(other)) return false;
      scheme = other;
      return true;
    },
    accepted: async (used) => {
      if (!isOpen || works) return;
      works = true;
      scheme = used;
      if (used === known) return;
      known = used;
      await remember(used);
    },
    sent: () => {
      if (!hasKey) return 'no key';
      if (configured !== 'auto') return 'as set';
      return works ? 'as before' : 'both ways';
    },
  };
}
