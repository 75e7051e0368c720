/** Splits SQL into statements as psql does: at semicolons outside quotes, comments, parentheses and function bodies. */

type Statement = {
  readonly text: string;
  /** Its position in the whole text, so that the position of an error refers to the whole text. */
  readonly offset: number;
};

/** Tokens that may contain a semicolon. An unfinished token reaches to the end of the text. Postgres then reports what is missing. */
const TOKEN =
  /--[^\n]*|'(?:[^']|'')*(?:'|$)|"(?:[^"]|"")*(?:"|$)|(?<![\w$])\$([a-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$[\s\S]*?(?:\$\1\$|$)|[a-z_\u0080-\uffff][\w$\u0080-\uffff]*|\/\*|[;()]/giy;
const ESCAPED = /'(?:[^'\\]|\\[\s\S]|'')*(?:'|$)/y;

export function splitStatements(sql: string): Statement[] {
  const statements: Statement[] = [];
  let start = 0;
  let depth = 0;
  /** Number of open `begin atomic … end` and, inside them, `case … end`: semicolons there belong to the body. */
  let bodies = 0;
  let word = '';
  for (let i = 0; i < sql.length; ) {
    TOKEN.lastIndex = i;
    const token = TOKEN.exec(sql)?.[0];
    if (token === undefined) {
      i++;
      continue;
    }
    if (token === '/*') {
      i = endOfComment(sql, i);
      continue;
    }
    i += token.length;
    const before = word;
    word = token.toLowerCase();
    if (word === 'e' && sql[i] === "'") {
      ESCAPED.lastIndex = i;
      i += ESCAPED.exec(sql)![0].length;
    } else if (token === '(') depth++;
    else if (token === ')') depth = Math.max(0, depth - 1);
    else if (word === 'atomic' && before === 'begin') bodies = 1;
    else if (bodies > 0 && word === 'case') bodies++;
    else if (bodies > 0 && word === 'end') bodies--;
    else if (token === ';' && depth === 0 && bodies === 0) {
      add(start, i - 1);
      start = i;
    }
  }
  add(start, sql.length);
  return statements;

  function add(from: number, to: number): void {
    const text = sql.slice(from, to);
    if (withoutComments(text).trim() === '') return;
    const lead = text.length - text.trimStart().length;
    statements.push({ text: text.trim(), offset: from + lead });
  }
}

/** The text without comments and without quoted parts. */
export function withoutTexts(sql: string): string {
  let bare = '';
  for (let i = 0; i < sql.length; ) {
    TOKEN.lastIndex = i;
    const token = TOKEN.exec(sql)?.[0] ?? sql[i]!;
    if (token === '/*') i = endOfComment(sql, i);
    else i += token.length;
    bare += /^(--|\/\*|'|"|\$)/.test(token) ? ' ' : token;
  }
  return bare;
}

/** Comments nest in SQL. */
function endOfComment(sql: string, start: number): number {
  let depth = 0;
  for (let i = start; i < sql.length; i++) {
    const pair = sql.slice(i, i + 2);
    if (pair === '/*') depth++;
    else if (pair === '*/') depth--;
    else continue;
    i++;
    if (depth === 0) return i + 1;
  }
  return sql.length;
}

export function withoutComments(text: string): string {
  let out = text.replace(/--[^\n]*/g, '');
  for (let at = out.indexOf('/*'); at !== -1; at = out.indexOf('/*'))
    out = out.slice(0, at) + out.slice(endOfComment(out, at));
  return out;
}

/** `line 2, column 7`, for a position that Postgres counts in characters of the statement, from 1. */
export function describePosition(sql: string, offset: number, position: number): string {
  // Postgres counts characters, JavaScript counts UTF-16 units.
  const statement = [...sql.slice(offset)].slice(0, position - 1).join('');
  const before = sql.slice(0, offset) + statement;
  const lines = before.split('\n');
  return `line ${lines.length}, column ${[...lines.at(-1)!].length + 1}`;
}
