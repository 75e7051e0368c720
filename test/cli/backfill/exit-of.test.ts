/** The exit codes of `chandler backfill`, and the tables in docs/configuration.md that document them. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { exitOf } from '../../../src/cli/backfill/exit-of.ts';
import { EXIT } from '../../../src/cli/shell/exit.ts';
import type { Ended } from '../../../src/ingest/backfill/verdict.ts';
import type { Left } from '../../../src/views/operations/left.ts';

const done = { kind: 'done' } as const;
const stopped = { kind: 'stopped', until: 1, reason: 'day' } as const;
const interrupted = { kind: 'interrupted' } as const;
const misconfigured = { kind: 'configurationError', message: 'no such key', about: 'process' } as const;
const left = (fate: Left['fate'], reason: Left['reason'] = 'unconfirmed'): Left => ({
  reason,
  fate,
  slots: 1,
  nextAskAt: null,
});
const ended = (end: Ended['end'], ...of: Left[]): Ended => ({ end, left: of });

describe('the exit code of a backfill', () => {
  test.each<[string, readonly Ended[], number]>([
    ['everything is there or known to be absent', [ended(done)], 0],
    ['the rest was too young to be final', [ended(done, left('too young', 'provisional'))], 0],
    ['the upstream refuses something', [ended(done, left('refused', 'history limit'))], 1],
    ['every attempt at something failed', [ended(done, left('failed', 'not asked yet'))], 1],
    ['the last word about a row is that it is invalid', [ended(done, left('failed', 'malformed'))], 1],
    ['slots wait for a second answer', [ended(done, left('later'))], 75],
    ['an invalid row is asked for again later', [ended(done, left('later', 'malformed'))], 75],
    ['something was never asked', [ended(done, left('later', 'not asked yet'))], 75],
    ['it stopped early', [ended(stopped)], 75],
    ['what is left is unknown', [{ end: done, left: null }], 75],
    ['the key or the address is refused', [ended(misconfigured, left('later'))], 2],
    ['it was interrupted', [ended(interrupted, left('later'))], 130],
    ['work is left, and something was refused', [ended(done, left('refused'), left('later'))], 75],
    ['work is left, and something failed', [ended(done, left('failed'), left('later'))], 75],
    ['of two intervals one is complete and one is not', [ended(done), ended(done, left('later'))], 75],
    ['of two intervals one is complete and one was refused', [ended(done, left('refused')), ended(done)], 1],
    ['of two intervals one was refused and one stopped early', [ended(done, left('refused')), ended(stopped)], 75],
    ['of two intervals the second was interrupted', [ended(done), ended(interrupted)], 130],
  ])('for the case: %s', (_, all, code) => {
    expect(exitOf(all)).toBe(code);
  });
});

describe('docs/configuration.md', () => {
  const text = readFileSync(new URL('../../../docs/configuration.md', import.meta.url), 'utf8');
  /** The first two columns of the table under this heading. */
  const rowsUnder = (head: string) => {
    const lines = text.slice(text.indexOf(head)).split('\n').slice(2);
    const rows = lines.slice(
      0,
      lines.findIndex((line) => !line.startsWith('|')),
    );
    return rows.map((row) =>
      row
        .split('|')
        .slice(1, 3)
        .map((cell) => cell.trim()),
    );
  };

  test('documents every exit code, and no other', () => {
    expect(rowsUnder('| code | meaning |').map(([code]) => Number(code!.replaceAll('`', '')))).toEqual(
      Object.values(EXIT),
    );
  });

  // A run for each row, in the order of the rows.
  const RUNS: readonly (readonly [begins: string, runs: readonly Ended[]])[] = [
    ['you interrupted it', [ended(interrupted)]],
    ['the upstream refuses the key', [ended(misconfigured)]],
    ['it waited longer', [ended(stopped)]],
    ['slots that a later run asks for', [ended(done, left('later')), ended(done, left('later', 'not asked yet'))]],
    ['slots that the upstream refuses', [ended(done, left('refused')), ended(done, left('failed', 'malformed'))]],
    ['nothing, or only', [ended(done), ended(done, left('too young', 'provisional'))]],
  ];
  const rows = rowsUnder('| what is left | code |');

  test.each(RUNS)(
    'documents in the row "%s …" the code of such a run, even if rows below it are true as well',
    (begins, runs) => {
      const at = RUNS.findIndex(([name]) => name === begins);
      const [what, code] = rows[at] ?? ['', ''];
      expect(what).toMatch(new RegExp(`^${begins}`));
      for (const run of runs)
        for (const [, below] of RUNS.slice(at))
          for (const other of below) expect(exitOf([run, other])).toBe(Number(code!.replaceAll('`', '')));
    },
  );

  test('has no further row', () => {
    expect(rows.length).toBe(RUNS.length);
  });
});
