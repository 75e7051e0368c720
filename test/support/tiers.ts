/** Finds the tests that need a server by their imports, so that no list must be kept. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** A test that reaches one of these files uses a Postgres, a Redis, or the built program in a process of its own. */
const NEEDS_SERVER = [
  'test/support/database.ts',
  'test/support/postgres-server.ts',
  'test/support/redis-server.ts',
  'test/support/s3-server.ts',
  'test/support/build.ts',
];
/** These start an embedded Postgres through the code of `src` itself. */
const NEEDS_SERVER_BY_ITSELF = ['test/store/embedded/embedded.test.ts'];

/** The test files below `test/` (paths from the root, with `/`) that need no server, without deep tests. */
export function testsWithoutServer(root: string): string[] {
  const files = readdirSync(path.join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .map((name) => `test/${name.replaceAll('\\', '/')}`)
    .filter((name) => name.endsWith('.ts'));
  const missing = [...NEEDS_SERVER, ...NEEDS_SERVER_BY_ITSELF].filter((name) => !files.includes(name));
  if (missing.length > 0) throw new Error(`test/support/tiers.ts names files that do not exist: ${missing.join(', ')}`);
  const imports = new Map(files.map((name) => [name, importsOf(root, name)]));
  const reaches = (name: string, seen: Set<string>): boolean => {
    if (NEEDS_SERVER.includes(name)) return true;
    if (seen.has(name)) return false;
    seen.add(name);
    return (imports.get(name) ?? []).some((next) => reaches(next, seen));
  };
  return files.filter(
    (name) =>
      name.endsWith('.test.ts') &&
      !name.endsWith('.deep.test.ts') &&
      !NEEDS_SERVER_BY_ITSELF.includes(name) &&
      !reaches(name, new Set()),
  );
}

/** What a file of `test/` imports from `test/`. */
function importsOf(root: string, name: string): string[] {
  const text = readFileSync(path.join(root, name), 'utf8');
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)]
    .map((match) => path.posix.join(path.posix.dirname(name), match[1]!))
    .filter((target) => target.startsWith('test/') && existsSync(path.join(root, target)));
}
