/** Connections are closed or reset all the time while the server runs. */
import { testLost } from './postgres-js-patches.ts';

testLost(['end', 'reset']);
