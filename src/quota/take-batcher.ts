/** Takers of one process that come while a take is under way are served together by the next one: the row of the ledger is locked once for all of them. */
import type { Spender, Stretch, Take, Unwanted } from './quota.ts';

type Taker = {
  readonly stretch: Stretch | undefined;
  readonly resolve: (take: Take | Unwanted) => void;
  readonly reject: (error: unknown) => void;
};
/** Resolves to what each is told, in their order; null = no grant was left for it, and nothing is said about when. */
type TakeForAll = (
  stretches: readonly (Stretch | undefined)[],
  spender: Spender,
) => Promise<readonly (Take | Unwanted | null)[]>;

/** One request for each call. Who comes first is served first, and those of other spenders do not wait for each other. */
export function createTakers(
  takeForAll: TakeForAll,
): (spender: Spender, stretch?: Stretch) => Promise<Take | Unwanted> {
  const lines = new Map<string, Taker[]>();

  return (spender, stretch) =>
    new Promise((resolve, reject) => {
      const key = `${spender.class} ${spender.asksAccount ?? false} ${spender.name}`;
      const taker = { stretch, resolve, reject };
      const line = lines.get(key);
      if (line) {
        line.push(taker);
        return;
      }
      const takers = [taker];
      lines.set(key, takers);
      void serve(key, takers, spender);
    });

  async function serve(key: string, line: Taker[], spender: Spender): Promise<void> {
    while (line.length > 0) {
      const served = [...line];
      try {
        const takes = await takeForAll(
          served.map((taker) => taker.stretch),
          spender,
        );
        // Whoever no grant was left for asks again: that answer says until when.
        line.splice(0, served.length, ...served.filter((_, i) => takes[i] === null));
        for (const [i, taker] of served.entries()) {
          const take = takes[i];
          if (take) taker.resolve(take);
        }
      } catch (error) {
        for (const taker of line.splice(0, served.length)) taker.reject(error);
      }
    }
    // In the same breath: nobody may join a line that is served no more.
    lines.delete(key);
  }
}
