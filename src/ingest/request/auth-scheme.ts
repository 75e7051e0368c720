/** Chooses the auth scheme in which the key is sent: as configured, or learned from the first answers and stored. */
import type { AuthScheme } from '../../upstream/answer.ts';

export type AuthSchemeChoice = {
  current(): AuthScheme;
  /** Called after a 403 to a key sent as `used`. True when a request in the other scheme is worth a try. */
  refused(used: AuthScheme): boolean;
  /** Called after any answer other than a 403: this scheme works. */
  accepted(used: AuthScheme): Promise<void>;
  /** For the message that the upstream refused the key. */
  sent(): KeySent;
};

/** How a refused key was sent: as configured, in both schemes, or in the scheme that worked before in this run. */
export type KeySent = 'no key' | 'as set' | 'both ways' | 'as before';

/**
 * `auto` begins with the stored scheme, or else with Bearer, as the API document says. After a 403 it tries the other scheme once, because the
 * upstream may have changed. A scheme that has worked in this run stays.
 */
export function createAuthSchemeChoice(options: {
  readonly hasKey: boolean;
  readonly configured: 'auto' | AuthScheme;
  readonly known: AuthScheme | null;
  readonly remember: (scheme: AuthScheme) => Promise<void>;
}): AuthSchemeChoice {
  const { hasKey, configured, remember } = options;
  const isOpen = hasKey && configured === 'auto';
  let scheme: AuthScheme = configured === 'auto' ? (options.known ?? 'bearer') : configured;
  let known = options.known;
  let works = false;
  const refusedScheme = new Set<AuthScheme>();
  return {
    current: () => scheme,
    refused: (used) => {
      // Another request has changed the scheme meanwhile.
      if (used !== scheme) return true;
      refusedScheme.add(used);
      const other = used === 'bearer' ? 'bare' : 'bearer';
      if (!isOpen || works || refusedScheme.has(other)) return false;
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
