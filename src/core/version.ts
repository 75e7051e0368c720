/** The version of this package. Only its package.json states it. */
import { readFileSync } from 'node:fs';

// This path is right from src/core/ and from dist/core/.
const PACKAGE = new URL('../../package.json', import.meta.url);

export const VERSION: string = JSON.parse(readFileSync(PACKAGE, 'utf8')).version;
