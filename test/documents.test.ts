/** The documents keep pace with the code: settings, links, and the length of the README. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { VARIABLES } from '../src/settings.ts';

const ROOT = join(import.meta.dirname, '..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const DOCUMENTS = [
  'README.md',
  'CHANGELOG.md',
  'src/README.md',
  ...readdirSync(join(ROOT, 'docs')).flatMap((f) => (f.endsWith('.md') ? [`docs/${f}`] : [])),
];

test('docs/configuration.md names every setting', () => {
  const text = read('docs/configuration.md');
  expect(VARIABLES.filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
});

test('docs/configuration.md names no setting that does not exist', () => {
  const known: readonly string[] = VARIABLES;
  const named = read('docs/configuration.md').match(/`(CHANDLER_[A-Z_]+[A-Z])`/g) ?? [];
  expect(named.map((name) => name.slice(1, -1)).filter((name) => !known.includes(name))).toEqual([]);
});

test('the README is short', () => {
  const lines = read('README.md').trimEnd().split('\n');
  expect(lines.length).toBeLessThanOrEqual(120);
  expect(lines.filter((line) => line.length > 130)).toEqual([]);
});

test('docs/decisions.md has every decision once, in order', () => {
  const numbers = [...read('docs/decisions.md').matchAll(/^## (\d+)\. /gm)].map(([, n]) => Number(n));
  expect(numbers).toEqual(numbers.map((_, i) => i + 1));
});

test('every decision that the code cites exists', () => {
  const text = read('docs/decisions.md');
  const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).filter((f) => f.endsWith('.ts'));
  const cited = files.flatMap((file) => {
    const citations = read(join('src', file)).matchAll(/\bdecisions? (\d+)(?:(?:, | and | to )(\d+))?/gi);
    return [...citations].flatMap(([, one, other]) => [one, other ?? one]);
  });
  expect(cited.length).toBeGreaterThan(20);
  expect(cited.filter((number) => !text.includes(`\n## ${number}. `))).toEqual([]);
});

describe.each(DOCUMENTS)('%s', (path) => {
  test('has no broken link', () => {
    const links = [...read(path).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link]) =>
      /^https?:/.test(link!) ? [] : [link!],
    );
    expect(links.filter((link) => !leadsSomewhere(path, link))).toEqual([]);
  });
});

function leadsSomewhere(from: string, link: string): boolean {
  const [file, anchor] = link.split('#') as [string, string?];
  const target = file === '' ? from : join(dirname(from), file);
  if (!existsSync(join(ROOT, target))) return false;
  return anchor === undefined || anchorsOf(read(target)).has(anchor);
}

/** The anchors that GitHub makes of headings. */
function anchorsOf(text: string): ReadonlySet<string> {
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading!);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}
