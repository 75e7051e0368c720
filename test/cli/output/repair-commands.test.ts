import { expect, test } from 'vitest';
import { refetchCommands } from '../../../src/cli/output/repair-commands.ts';
import type { SeriesProof } from '../../../src/views/operations/verify.ts';

test('a value that somebody wrote into the warehouse is one word for the shell', () => {
  const proof = { coinId: '$(id)', interval: '24h', quote: 'usd;id', toRefetch: [{ from: 0, to: 86_400_000 }] };
  expect(refetchCommands(proof as unknown as SeriesProof)).toEqual([
    "chandler backfill '$(id)' --interval 24h --quote 'usd;id' --start 1970-01-01T00:00:00.000Z --end 1970-01-02T00:00:00.000Z",
  ]);
});
