import { afterEach, expect, test, vi } from 'vitest';
import { chooseRunAs } from '../../../src/store/embedded/run-as.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

test.skipIf(process.getuid?.() !== 0)('an error tells root when the PATH lacks the system programs', () => {
  vi.stubEnv('PATH', '/nowhere');
  const binaries = { root: '/nowhere', initdb: '/nowhere/initdb' } as Parameters<typeof chooseRunAs>[1];
  expect(() => chooseRunAs('/', binaries)).toThrow(
    /the programs 'id' and 'unshare' .* are not on the PATH; add the folders/,
  );
});
