import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { packagesWith, strip, violations } from './support/architecture.ts';

const ROOT = join(import.meta.dirname, '..');

function sourcesOfTheHouse(): Map<string, string> {
  const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    /\.tsx?$/.test(file),
  );
  return new Map(files.map((file) => [file.replaceAll('\\', '/'), readFileSync(join(ROOT, 'src', file), 'utf8')]));
}

test('no source breaks a rule', () => {
  const sources = sourcesOfTheHouse();
  expect(sources.size).toBeGreaterThan(10);
  expect(violations(sources)).toEqual([]);
});

describe('a command loads only the packages it needs', () => {
  const sources = sourcesOfTheHouse();
  const SERVER = ['hono', '@hono/node-server', '@modelcontextprotocol/server', 'prom-client'];
  const QUEUE = ['bullmq', 'pg'];
  test.each([
    ['cli/program.ts', [...SERVER, ...QUEUE, 'undici', 'cli-progress']],
    ['cli/commands/status.ts', [...SERVER, ...QUEUE, 'undici', 'cli-progress']],
    ['cli/commands/quota.ts', [...SERVER, ...QUEUE, 'undici', 'cli-progress']],
    ['cli/backfill/plan.ts', [...SERVER, ...QUEUE]],
    ['cli/backfill/backfill.ts', [...SERVER, ...QUEUE]],
    ['background/http/market-server.ts', QUEUE],
  ])('%s', (command, others) => {
    const loaded = packagesWith(sources, command);
    expect(loaded).toContain('postgres');
    expect([...loaded].filter((name) => others.includes(name))).toEqual([]);
  });
});

test('the top level of the repository has the files of the design, and no others', () => {
  const allowed = new Set([
    ...[
      'docs',
      'examples',
      'src',
      'migrations',
      'test',
      'docker-compose.yml',
      'drizzle.config.ts',
      'package.json',
      'tsconfig.json',
    ],
    ...['README.md', 'LICENSE', 'CHANGELOG.md', 'Dockerfile', 'package-lock.json', 'tsconfig.build.json'],
    ...['vitest.config.ts', 'biome.json', 'node_modules', 'dist', 'coverage'],
  ]);
  const surplus = readdirSync(ROOT).filter((name) => !name.startsWith('.') && !allowed.has(name));
  expect(surplus).toEqual([]);
});

test('no test or hook has less time than vitest.config.ts gives to all', () => {
  const config = readFileSync(join(ROOT, 'vitest.config.ts'), 'utf8');
  const msOf = (text: string) => Number(text.replaceAll('_', ''));
  const forAll = msOf(/testTimeout: ([\d_]+)/.exec(config)![1]!);
  const files = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    /^(?!bench\b).*\.ts$/.test(file),
  );
  // In the options of a test, or at its end.
  const LIMIT =
    /(?<![.\w])(?:test|it|describe)(?:\.\w+)*\([^{]{1,300}\{\s*timeout: (?<first>[\d_]+)|^ {0,2}\},\s*(?<last>[\d_]+),?\s*\);/gm;
  const found = files.flatMap((file) =>
    [...readFileSync(join(ROOT, 'test', file), 'utf8').matchAll(LIMIT)].map(({ groups }) => ({
      file,
      ms: msOf(groups!.first ?? groups!.last!),
    })),
  );
  expect(found.length).toBeGreaterThan(10);
  expect(found.filter(({ ms }) => ms <= forAll)).toEqual([]);
});

describe('the rules', () => {
  const good = { 'core/span.ts': 'export const span = 1;', 'clock.ts': 'export type Instant = number;' };
  const check = (files: Record<string, string>) => violations(new Map(Object.entries({ ...good, ...files })));

  test('accept sources that keep them', () => {
    expect(
      check({
        'core/gap.ts': "import type { Instant } from '../clock.ts';\nimport { span } from './span.ts';",
        'store/coin.ts': "import postgres from 'postgres';\nimport { span } from '../core/span.ts';",
        'main.ts': "import { run } from './cli/run.ts';\nprocess.exit(process.env['X'] ? 1 : 0);",
        'cli/run.ts':
          "export const run = () => process.cwd(); // Date.now() would be wrong\nconst text = 'new Date()';",
      }),
    ).toEqual([]);
  });

  test.each<[string, Record<string, string>, string]>([
    [
      'an import upwards',
      { 'core/a.ts': "import { b } from '../store/b.ts';", 'store/b.ts': '' },
      'core/a.ts: imports upwards from store/b.ts',
    ],
    [
      'an import sideways',
      { 'quota/a.ts': "export * from '../views/b.ts';", 'views/b.ts': '' },
      'quota/a.ts: imports sideways from views/b.ts',
    ],
    [
      'a type imported sideways',
      { 'ingest/a.ts': "import type {\n  B,\n} from '../service/b.ts';", 'service/b.ts': '' },
      'ingest/a.ts: imports sideways from service/b.ts',
    ],
    [
      'a dynamic import upwards',
      { 'views/a.ts': "await import('../app.ts');", 'app.ts': '' },
      'views/a.ts: imports upwards from app.ts',
    ],
    [
      'an import for its effects upwards',
      { 'store/a.ts': "import '../app.ts';", 'app.ts': '' },
      'store/a.ts: imports upwards from app.ts',
    ],
    [
      'a file that does not exist',
      { 'core/a.ts': "import { b } from './b.ts';" },
      'core/a.ts: imports core/b.ts, which does not exist',
    ],
    [
      'an import without its extension',
      { 'core/a.ts': "import { b } from './span';" },
      'core/a.ts: imports core/span without its extension',
    ],
    [
      'a cycle',
      { 'core/a.ts': "import './b.ts';", 'core/b.ts': "import './c.ts';", 'core/c.ts': "import './a.ts';" },
      'core/a.ts → core/b.ts → core/c.ts → core/a.ts: is a cycle',
    ],
    [
      'a circle of folders',
      {
        'core/x/a.ts': "import '../y/b.ts';",
        'core/y/b.ts': '',
        'core/y/c.ts': "import '../x/d.ts';",
        'core/x/d.ts': '',
      },
      'core/x/ → core/y/ → core/x/: is a cycle',
    ],
    [
      'a folder that is an alphabet',
      Object.fromEntries([...'abcdefghijklmnopq'].map((name) => [`views/${name}.ts`, ''])),
      'views: has 17 files, more than 16: split it by subject',
    ],
    ['a folder without a row', { 'extra/a.ts': '' }, 'extra/a.ts: is in no row of the import rule (design, section 4)'],
    [
      'a folder without a noun',
      { 'core/utils/a.ts': '' },
      'core/utils/a.ts: is named for no noun; name it after what it does',
    ],
    ['a barrel', { 'core/index.ts': '' }, 'core/index.ts: is named for no noun; name it after what it does'],
    ['a name not in kebab-case', { 'core/spanList.ts': '' }, 'core/spanList.ts: is not in kebab-case'],
    ['the time of day', { 'core/a.ts': 'const t = Date.now();' }, 'core/a.ts: reads the time of day: take a Clock'],
    [
      'a date without an argument',
      { 'views/a.ts': 'f(new Date( ));' },
      'views/a.ts: reads the time of day: take a Clock',
    ],
    ['a timer', { 'cli/a.ts': 'setTimeout(f, 1);' }, 'cli/a.ts: waits on its own: take a Clock'],
    [
      'timers by import',
      { 'cli/a.ts': "import { scheduler } from 'node:timers/promises';" },
      'cli/a.ts: imports node:timers/promises; take a Clock or Io',
    ],
    [
      'the environment outside main.ts',
      { 'cli/a.ts': 'const e = process.env;' },
      'cli/a.ts: reads the environment: only main.ts does',
    ],
    ['an exit outside main.ts', { 'cli/a.ts': 'process.exit(1);' }, 'cli/a.ts: ends the process: only main.ts does'],
    [
      'the process in a lower row',
      { 'ingest/a.ts': 'process.on(x);' },
      'ingest/a.ts: touches the process: only main.ts and cli/ do',
    ],
    ['a default export', { 'core/a.ts': 'export default 1;' }, 'core/a.ts: has a default export'],
    ['an enum', { 'core/a.ts': 'export enum Colour { Red }' }, 'core/a.ts: has an enum: use a union of strings'],
    ['the console', { 'core/a.ts': 'console.log(1);' }, 'core/a.ts: writes to the console: take a log'],
    [
      'the queue outside ingest',
      { 'store/a.ts': "import { Queue } from 'bullmq';" },
      'store/a.ts: imports bullmq, which only ingest may know',
    ],
    ['a file that is too long', { 'core/a.ts': '\n'.repeat(300) }, 'core/a.ts: has 301 lines, more than 300'],
    [
      'code between the parts of a template',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the source of a template
      { 'core/a.ts': 'const a = `x ${Date.now()} y`;' },
      'core/a.ts: reads the time of day: take a Clock',
    ],
    [
      'code after a regular expression with a quote in it',
      { 'core/a.ts': "const a = /'/.test(b);\nDate.now();" },
      'core/a.ts: reads the time of day: take a Clock',
    ],
  ])('report %s', (_, files, expected) => {
    expect(check(files)).toEqual([expected]);
  });

  test('ignore comments and strings', () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the source of a template
    const text = "/* Date.now() */ const a = 'Date.now()'; const b = `Date.now() ${c} Date.now()`; // Date.now()";
    expect(strip(text).bare).not.toContain('Date');
    expect(strip(text).code.match(/Date/g)).toHaveLength(3);
  });
});
