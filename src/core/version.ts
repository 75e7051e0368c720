/** The version of this package, read from its package.json: one place to change it. */
import { readFileSync } from 'node:fs';

// The same number of steps up from src/core/ and from dist/core/.
const PACKAGE = new URL('../../package.json', import.meta.url);

export const VERSION: string = JSON.parse(readFileSync(PACKAGE, 'utf8')).version;
