/** Sums of hashes modulo 2^64, and what the difference of two sums shows. Pure. */

const BITS = 64;

/** The number of candles, the sum of their hashes, and the sum of (lower half of the hash) × (open time / width), each modulo 2^64. */
export type Sums = { readonly candles: number; readonly digest: bigint; readonly locator: bigint };

export const NOTHING: Sums = { candles: 0, digest: 0n, locator: 0n };

export function modulo(value: bigint): bigint {
  return BigInt.asUintN(BITS, value);
}

export function plus(a: Sums, b: Sums): Sums {
  return {
    candles: a.candles + b.candles,
    digest: modulo(a.digest + b.digest),
    locator: modulo(a.locator + b.locator),
  };
}

export function minus(a: Sums, b: Sums): Sums {
  return {
    candles: a.candles - b.candles,
    digest: modulo(a.digest - b.digest),
    locator: modulo(a.locator - b.locator),
  };
}

export function isNothing({ candles, digest, locator }: Sums): boolean {
  return candles === 0 && digest === 0n && locator === 0n;
}

/** The sums of one candle. `place`: its open time divided by the width of the interval. */
export function sumsOf(hash: bigint, place: number): Sums {
  return { candles: 1, digest: modulo(hash), locator: modulo(BigInt.asUintN(32, hash) * BigInt(place)) };
}

/**
 * The place of the only candle that differs; null when more than one does. The lower halves of two hashes differ by `d`. The digest shows the lower
 * 32 bits of `d`, but not its sign. The locator differs by `d` × place.
 */
export function placeOf({ candles, digest, locator }: Sums): number | null {
  if (Math.abs(candles) > 1) return null;
  const low = BigInt.asUintN(32, digest);
  const product = BigInt.asIntN(BITS, locator);
  for (const d of [low, low - (1n << 32n)]) {
    if (d === 0n || product % d !== 0n) continue;
    const place = product / d;
    if (place > 0n && place < 1n << 40n) return Number(place);
  }
  return null;
}

/** The form that users compare: 16 hexadecimal digits. */
export function toHex(digest: bigint): string {
  return modulo(digest).toString(16).padStart(16, '0');
}
