/** Stateless randomness: the same input always gives the same number, so nothing depends on order or concurrency. */

/** A 32-bit integer from two. */
export function mix(a: number, b: number): number {
  let h = Math.imul(a ^ (a >>> 16), 0x21f0aaad) ^ Math.imul(b, 0x9e3779b1);
  h = Math.imul(h ^ (h >>> 15), 0x735a2d97);
  h = Math.imul(h ^ (h >>> 15), 0x85ebca6b);
  return h ^ (h >>> 15);
}

/** A 32-bit integer from a text. */
export function hashText(seed: number, text: string): number {
  let h = mix(seed, text.length);
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return mix(h, seed);
}

/** A number in [0, 1). */
export function unit(hash: number): number {
  return (hash >>> 0) / 0x1_0000_0000;
}

/** An integer in [0, n). */
export function below(n: number, hash: number): number {
  return Math.floor(unit(hash) * n);
}
