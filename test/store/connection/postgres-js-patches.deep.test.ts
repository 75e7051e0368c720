/** Connections that are closed or reset all the time, while the server lives. */
import { testLost } from './postgres-js-patches.ts';

testLost(['end', 'reset']);
