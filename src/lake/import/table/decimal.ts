/** Reads decimals, which files store as a whole number and the number of digits behind the point. */

/** Beyond it, a power of ten is no double. */
const MOST_DIGITS = 22;

/** The double that is nearest to `whole` divided by 10 ** `scale`. */
export function readDecimal(whole: number | bigint, scale: number): number {
  const number = Number(whole);
  // Both are exact, so the quotient is rounded only once.
  if (Number.isSafeInteger(number) && scale >= 0 && scale <= MOST_DIGITS) return number / 10 ** scale;
  return Number(`${whole}e${-scale}`);
}
