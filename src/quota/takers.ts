/** Takers of one process that come while a take is under way are served together by the next one: the row of the ledger is locked once for all of them. */
import type { Spender, Take } from './quota.ts';

type Taker = { readonly resolve: (take: Take) => void; readonly reject: (error: unknown) => void };
/** Resolves to one grant or more, at most `wanted`, or to one denial. */
type TakeUpTo = (wanted: number, spender: Spender) => Promise<readonly Take[]>;

/** One request for each call. Who comes first is served first, and those of other spenders do not wait for each other. */
export function createTakers(takeUpTo: TakeUpTo): (spender: Spender) => Promise<Take> {
  const lines = new Map<string, Taker[]>();

  return (spender) =>
    new Promise((resolve, reject) => {
      const key = `${spender.class} ${spender.asksAccount ?? false} ${spender.name}`;
      const line = lines.get(key);
      if (line) {
        line.push({ resolve, reject });
        return;
      }
      const takers = [{ resolve, reject }];
      lines.set(key, takers);
      void serve(key, takers, spender);
    });

  async function serve(key: string, line: Taker[], spender: Spender): Promise<void> {
    while (line.length > 0) {
      const wanted = line.length;
      try {
        const takes = await takeUpTo(wanted, spender);
        const isDenied = takes[0]?.kind === 'denied';
        // Whoever no grant was left for asks again: that answer says until when.
        const served = line.splice(0, isDenied ? wanted : takes.length);
        for (const [i, taker] of served.entries()) taker.resolve(takes[isDenied ? 0 : i]!);
      } catch (error) {
        for (const taker of line.splice(0, wanted)) taker.reject(error);
      }
    }
    // In the same breath: nobody may join a line that is served no more.
    lines.delete(key);
  }
}
