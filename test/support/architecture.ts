/** The architecture rules as a function of the sources: who may import whom, and what may be used where. */
import { posix } from 'node:path';

/** Path below `src/` → text. */
export type Sources = ReadonlyMap<string, string>;

/**
 * Folders (or single files) by row, lowest first. A file imports from its own unit and from lower rows only. Files in one unit may import
 * each other: `core`, the clock and the log; the composition root; `main.ts` and the commands.
 */
const ROWS: readonly (readonly (readonly string[])[])[] = [
  [['core', 'clock.ts', 'log.ts']],
  [['contract']],
  [['store']],
  [['upstream'], ['quota'], ['views'], ['simulator']],
  [['ingest'], ['service'], ['dashboard'], ['lake']],
  [['app.ts', 'config.ts', 'settings.ts', 'budget.ts', 'ingestion.ts', 'simulate.ts', 'background']],
  [['main.ts', 'cli']],
];

const MOST_LINES = 300;
/** A folder with more files must be split by subject. */
const MOST_FILES = 16;
const FORBIDDEN_NAMES = /(^|\/)(utils?|helpers?|common|types|shared|misc|lib)(\/|\.tsx?$)|(^|\/)index\.tsx?$/;

/** Packages that only one unit may import. */
const PACKAGES: Readonly<Record<string, string>> = {
  bullmq: 'ingest',
  'node-cron': 'ingest',
  commander: 'cli',
  'cli-progress': 'cli',
  pino: 'log.ts',
  'prom-client': 'background',
  hyparquet: 'lake',
  'hyparquet-writer': 'lake',
  'apache-arrow': 'lake',
  '@aws-sdk/client-s3': 'lake',
  fflate: 'lake',
  'pg-copy-streams': 'store',
};

/** The files that run in the browser. */
const BROWSER = /^dashboard\/client\//;

type Ban = { readonly pattern: RegExp; readonly what: string; readonly allowed: readonly RegExp[] };

/** Code that is allowed only in the listed files. Comments and strings do not count. */
const BANS: readonly Ban[] = [
  {
    pattern:
      /\bDate\.now\b|\bnew Date\(\s*\)|\bnew Date(?!\s*\(|\w)|(?<![\w.])Date\(\)|\bperformance\.now\b|\bprocess\.hrtime\b/,
    what: 'reads the time of day: take a Clock',
    allowed: [/^clock\.ts$/, BROWSER],
  },
  {
    pattern: /(?<![\w.])(setTimeout|setInterval)\b|\bAbortSignal\.timeout\b/,
    what: 'waits on its own: take a Clock',
    allowed: [/^clock\.ts$/, BROWSER],
  },
  {
    pattern: /(?<![\w.])process\s*\.\s*env\b|(?<![\w.])process\s*\[/,
    what: 'reads the environment: only main.ts does',
    allowed: [/^main\.ts$/],
  },
  {
    pattern: /(?<![\w.])process\s*\.\s*(exit|exitCode|abort)\b/,
    what: 'ends the process: only main.ts does',
    allowed: [/^main\.ts$/],
  },
  {
    // The launcher of the embedded server needs its user, its folder, and whether a server it left is still alive.
    pattern: /(?<![\w.])process\s*\.\s*(?!(?:env|exit|exitCode|abort)\b)/,
    what: 'touches the process: only main.ts and cli/ do',
    allowed: [/^main\.ts$/, /^cli\//, /^store\/embedded[\w-]*(\/[\w-]+)?\.ts$/],
  },
  { pattern: /\bexport\s+default\b/, what: 'has a default export', allowed: [] },
  { pattern: /(?<![\w.$])enum\s+[A-Z]/, what: 'has an enum: use a union of strings', allowed: [] },
  { pattern: /(?<![\w.])console\s*\./, what: 'writes to the console: take a log', allowed: [] },
];

/** One line for each rule that a file breaks, sorted; none when all rules are kept. */
export function violations(sources: Sources): string[] {
  const found: string[] = [];
  const graph = new Map<string, string[]>();
  for (const [path, text] of sources) {
    if (unitOf(path) === undefined) found.push(`${path}: is in no row of the import rule (design, section 4)`);
    if (FORBIDDEN_NAMES.test(path)) found.push(`${path}: is named for no noun; name it after what it does`);
    if (!/^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z]+)+$/.test(posix.basename(path))) found.push(`${path}: is not in kebab-case`);
    const lines = text.split('\n').length;
    if (lines > MOST_LINES) found.push(`${path}: has ${lines} lines, more than ${MOST_LINES}`);
    const { code, bare } = strip(text);
    for (const ban of BANS) {
      if (ban.pattern.test(bare) && !ban.allowed.some((allowed) => allowed.test(path)))
        found.push(`${path}: ${ban.what}`);
    }
    const targets: string[] = [];
    for (const specifier of importsIn(code)) {
      const target = specifier.startsWith('.') ? posix.join(posix.dirname(path), specifier) : undefined;
      if (target === undefined) found.push(...packageViolation(path, specifier));
      else {
        targets.push(target);
        found.push(...importViolation(path, target, sources));
      }
    }
    graph.set(path, targets);
  }
  return [...found, ...cyclesIn(graph), ...crowdedFolders(sources), ...folderCyclesIn(graph)].sort();
}

function crowdedFolders(sources: Sources): string[] {
  const files = new Map<string, number>();
  for (const path of sources.keys()) files.set(posix.dirname(path), (files.get(posix.dirname(path)) ?? 0) + 1);
  const crowded = [...files].filter(([, count]) => count > MOST_FILES);
  return crowded.map(
    ([folder, count]) => `${folder}: has ${count} files, more than ${MOST_FILES}: split it by subject`,
  );
}

/** A cycle within one folder is in `cyclesIn(graph)` already. */
function folderCyclesIn(graph: ReadonlyMap<string, readonly string[]>): string[] {
  return cyclesIn(folderGraph(graph)).filter((cycle) => /\/( →|:)/.test(cycle));
}

/** What the folders inside each top folder import from each other. A file beside the folders stands for itself. */
function folderGraph(graph: ReadonlyMap<string, readonly string[]>): Map<string, string[]> {
  const folders = new Map<string, string[]>();
  for (const [path, targets] of graph) {
    const from = folderOf(path);
    const others = targets.filter((target) => sharesTop(path, target) && folderOf(target) !== from).map(folderOf);
    folders.set(from, [...(folders.get(from) ?? []), ...others]);
  }
  return folders;
}

function sharesTop(path: string, other: string): boolean {
  return path.includes('/') && path.split('/')[0] === other.split('/')[0];
}

function folderOf(path: string): string {
  const parts = path.split('/');
  return parts.length > 2 ? `${parts.slice(0, 2).join('/')}/` : path;
}

function packageViolation(path: string, specifier: string): string[] {
  if (/^(node:)?(process|timers)(\/promises)?$/.test(specifier))
    return [`${path}: imports ${specifier}; take a Clock or Io`];
  const name = packageOf(specifier);
  const home = PACKAGES[name];
  if (home === undefined || path === home || path.startsWith(`${home}/`)) return [];
  return [`${path}: imports ${name}, which only ${home} may know`];
}

function importViolation(path: string, target: string, sources: Sources): string[] {
  if (!/\.(tsx?|json)$/.test(target)) return [`${path}: imports ${target} without its extension`];
  if (!target.endsWith('.json') && !sources.has(target)) return [`${path}: imports ${target}, which does not exist`];
  if (BROWSER.test(path) !== BROWSER.test(target)) return [`${path}: imports ${target} between browser and server`];
  const from = unitOf(path);
  const to = unitOf(target);
  if (from === undefined || to === undefined || from.unit === to.unit || to.row < from.row) return [];
  const direction = to.row > from.row ? 'upwards' : 'sideways';
  return [`${path}: imports ${direction} from ${target}`];
}

function unitOf(path: string): { readonly row: number; readonly unit: readonly string[] } | undefined {
  const top = path.split('/')[0]!;
  for (const [row, units] of ROWS.entries()) {
    const unit = units.find((names) => names.includes(top));
    if (unit !== undefined) return { row, unit };
  }
  return undefined;
}

function importsIn(code: string): string[] {
  const statements = code.matchAll(/(?<![\w.])(?:import|export)\b(?:[\s\w{},*$]*?\bfrom)?\s*(['"])([^'"]+)\1/g);
  const calls = code.matchAll(/\bimport\(\s*(['"`])([^'"`]+)\1/g);
  return [...statements, ...calls].map((match) => match[2]!);
}

/** The packages that are loaded with a file, directly or through its imports. Dynamic and type imports do not count. */
export function packagesWith(sources: Sources, start: string): Set<string> {
  const seen = new Set<string>();
  const packages = new Set<string>();
  const visit = (path: string) => {
    if (seen.has(path) || !sources.has(path)) return;
    seen.add(path);
    for (const specifier of staticImportsIn(strip(sources.get(path)!).code)) {
      if (specifier.startsWith('.')) visit(posix.join(posix.dirname(path), specifier));
      else if (!specifier.startsWith('node:')) packages.add(packageOf(specifier));
    }
  };
  visit(start);
  return packages;
}

function staticImportsIn(code: string): string[] {
  const statements = code.matchAll(
    /(?<![\w.])(?:import|export)\b(?!\s+type\b)(?:[\s\w{},*$]*?\bfrom)?\s*(['"])([^'"]+)\1/g,
  );
  return [...statements].map((match) => match[2]!);
}

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

function cyclesIn(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const state = new Map<string, 'open' | 'done'>();
  const found: string[] = [];
  const visit = (path: string, trail: readonly string[]) => {
    if (state.get(path) === 'done' || !graph.has(path)) return;
    if (state.get(path) === 'open') {
      found.push(`${[...trail.slice(trail.indexOf(path)), path].join(' → ')}: is a cycle`);
      return;
    }
    state.set(path, 'open');
    for (const target of graph.get(path)!) visit(target, [...trail, path]);
    state.set(path, 'done');
  };
  for (const path of [...graph.keys()].sort()) visit(path, []);
  return found;
}

/** The text without comments (`code`), and also without the contents of strings and regular expressions (`bare`). */
export function strip(text: string): { readonly code: string; readonly bare: string } {
  let code = '';
  let bare = '';
  const emit = (part: string, inside = false) => {
    code += part;
    bare += inside ? '' : part;
  };
  /** Depths of `{` at which a template literal continues. */
  const templates: number[] = [];
  let depth = 0;
  let i = 0;
  const template = () => {
    while (i < text.length && text[i] !== '`') {
      if (text[i] === '$' && text[i + 1] === '{') {
        emit('${');
        i += 2;
        templates.push(depth++);
        return;
      }
      const step = text[i] === '\\' ? 2 : 1;
      emit(text.slice(i, i + step), true);
      i += step;
    }
    emit('`');
    i++;
  };
  while (i < text.length) {
    const char = text[i]!;
    if (text.startsWith('//', i)) {
      while (i < text.length && text[i] !== '\n') i++;
    } else if (text.startsWith('/*', i)) {
      const end = text.indexOf('*/', i + 2);
      emit(' ');
      i = end === -1 ? text.length : end + 2;
    } else if (char === "'" || char === '"' || (char === '/' && startsRegex(bare))) {
      const literal = quotedFrom(text, i);
      emit(char);
      emit(literal.slice(1, -1), true);
      emit(literal.slice(-1));
      i += literal.length;
    } else if (char === '`') {
      emit('`');
      i++;
      template();
    } else {
      emit(char);
      i++;
      if (char === '{') depth++;
      if (char === '}' && --depth === templates.at(-1)) {
        templates.pop();
        template();
      }
    }
  }
  return { code, bare };
}

/** The string or regular expression that begins at `start`, with its delimiters. */
function quotedFrom(text: string, start: number): string {
  const delimiter = text[start]!;
  let inClass = false;
  for (let i = start + 1; i < text.length; i++) {
    if (text[i] === '\\') i++;
    else if (text[i] === '\n') return text.slice(start, i);
    else if (delimiter === '/' && text[i] === '[') inClass = true;
    else if (delimiter === '/' && text[i] === ']') inClass = false;
    else if (text[i] === delimiter && !inClass) return text.slice(start, i + 1);
  }
  return text.slice(start);
}

/** A slash divides after a value, and starts a regular expression elsewhere. */
function startsRegex(before: string): boolean {
  const tail = before.trimEnd();
  return !/[\w)\]}$'"`]$/.test(tail) || /\b(return|typeof|case|in|of|await|yield)$/.test(tail);
}
