import { describe } from 'vitest';
import { testLocked, useServers } from './serving.ts';

useServers();

describe('chandler serve', () => {
  testLocked('nobody asks');
  testLocked('a service waits');
});
