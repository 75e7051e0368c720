/** What a statement may do, judged by its first words. This is enough to decide when to check whether it changed something. */
import { withoutComments, withoutTexts } from './sql-statements.ts';

/**
 * `reads`: changes something only through what it calls or contains; Postgres reports afterwards whether it did. `begins` and `ends`: a
 * transaction. `neutral`: changes only the session. Everything else `changes` something.
 */
export type StatementKind = 'reads' | 'begins' | 'ends' | 'neutral' | 'changes';

const READS = new Set(['select', 'with', 'values', 'table', 'explain', 'fetch', 'move']);
const BEGINS = new Set(['begin', 'start']);
const ENDS = new Set(['commit', 'end', 'rollback', 'abort']);
const NEUTRAL = new Set([
  ...['set', 'reset', 'show', 'discard', 'savepoint', 'release', 'lock', 'prepare', 'deallocate'],
  ...['declare', 'close', 'listen', 'unlisten', 'notify', 'checkpoint'],
]);

export function kindOf(statement: string): StatementKind {
  const [first = '', ...others] =
    withoutComments(statement)
      .toLowerCase()
      .match(/[a-z_]+/g) ?? [];
  if (READS.has(first) || copyDirection(statement) === 'out') return 'reads';
  if (BEGINS.has(first)) return 'begins';
  if (first === 'prepare' && others[0] === 'transaction') return 'ends';
  if (NEUTRAL.has(first)) return 'neutral';
  if (!ENDS.has(first) || others[0] === 'prepared') return 'changes';
  // `rollback to` goes back within a transaction. `and chain` begins the next one.
  const [second, third] = others[0] === 'work' || others[0] === 'transaction' ? others.slice(1) : others;
  return second === 'to' || (second === 'and' && third === 'chain') ? 'neutral' : 'ends';
}

/** `out`: `copy … to stdout` returns data besides the statement. `in`: `copy … from stdin` needs data. Null when it is neither. */
export function copyDirection(statement: string): 'in' | 'out' | null {
  const bare = withoutTexts(statement).trim();
  if (!/^copy\b/i.test(bare)) return null;
  if (/\bfrom\s+stdin\b/i.test(bare)) return 'in';
  return /\bto\s+stdout\b/i.test(bare) ? 'out' : null;
}

/** The text with its passwords replaced by `***`, because the audit log keeps it. */
export function withoutPasswords(sql: string): string {
  return sql.replace(/(\bpassword\s*(?:=\s*)?)(?:e?'(?:[^'\\]|\\.|'')*'|\$(\w*)\$[\s\S]*?\$\2\$)/gi, "$1'***'");
}
