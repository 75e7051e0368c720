/**
 * The results of a comparison with an attestation. `grown`: more slots are final. `revised`, `mended`: changed since, and the former values are on
 * record and equal the attested ones. `renamed`: the upstream gave the coin another id since, which is on record. `removed`: retention removed it
 * since. `changed`: a table without a history is different. `tampered`: none of these.
 */
export const VERDICTS = ['equal', 'grown', 'revised', 'mended', 'renamed', 'removed', 'changed', 'tampered'] as const;
export type Verdict = (typeof VERDICTS)[number];

export type Finding = {
  /** `btc-bitcoin usd 24h`, or the name of a table. */
  readonly subject: string;
  /** `2024-01`; null: the finding is not about one month. */
  readonly month: string | null;
  readonly verdict: Verdict;
  /** Why, as a sentence without a full stop; empty when equal. */
  readonly detail: string;
};

export function finding(subject: string, month: string | null, verdict: Verdict, detail: string): Finding {
  return { subject, month, verdict, detail };
}
