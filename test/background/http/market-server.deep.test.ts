import { describe } from 'vitest';
import { testLocked, testNeverEnding, useServers } from './serving.ts';

useServers();

describe('chandler serve', () => {
  testLocked('nobody asks');
  testLocked('a service waits');
  testNeverEnding(['serve']);
});
