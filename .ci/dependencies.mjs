/**
 * What the packages of package-lock.json bring with them. `scripts`: each install script must have been allowed or denied in
 * `allowScripts` of package.json; run before `npm ci`, so that no other one runs. `licences`: the list of all packages with their
 * licences, each of which must be among those below; run after `npm ci`, because the lock file lacks some.
 *
 *     node .ci/dependencies.mjs scripts|licences [folder]
 */
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

const ALLOWED = ['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', '0BSD', 'Unlicense', 'BlueOak-1.0.0'];

/** Only for tools of the developers, of which nothing is shipped: each by its name (`*`: any end), with its licence and the reason. */
const TOOLS = [
  {
    name: 'lightningcss',
    licence: 'MPL-2.0',
    why: 'vite, below vitest, needs it for CSS, of which there is none here',
  },
  { name: 'lightningcss-*', licence: 'MPL-2.0', why: 'its binaries' },
  { name: 'axe-core', licence: 'MPL-2.0', why: 'the tests of the dashboard load it into their browser, unchanged' },
];

const [what, folder = '.'] = process.argv.slice(2);
const read = (name) => JSON.parse(readFileSync(path.join(folder, name), 'utf8'));
const packages = Object.entries(read('package-lock.json').packages)
  .filter(([place]) => place.includes('node_modules/'))
  .map(([place, entry]) => ({ ...entry, place, name: entry.name ?? place.split('node_modules/').at(-1) }))
  .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));

const problems = { scripts: checkScripts, licences: checkLicences }[what]?.() ?? [
  `${JSON.stringify(what)} is neither scripts nor licences`,
];
for (const problem of problems) console.error(problem);
process.exitCode = problems.length > 0 ? 1 : 0;

function checkScripts() {
  const policy = read('package.json').allowScripts ?? {};
  const found = packages.filter(({ hasInstallScript }) => hasInstallScript === true);
  const problems = [];
  console.log(`Install scripts (${found.length}):`);
  for (const { name, version } of found) {
    const exact = `${name}@${version}`;
    const verdict = policy[name] === false ? 'denied' : policy[exact] === true ? 'allowed' : 'not reviewed';
    console.log(`  ${exact}: ${verdict}`);
    if (verdict === 'not reviewed') {
      problems.push(
        `${exact} has an install script that nobody has reviewed: read it, then npm approve-scripts ${name}, or npm deny-scripts ${name}`,
      );
    }
  }
  const known = new Set(found.flatMap(({ name, version }) => [name, `${name}@${version}`]));
  for (const entry of Object.keys(policy)) {
    if (!known.has(entry))
      problems.push(`allowScripts of package.json names ${entry}, which has no install script: remove it`);
  }
  return problems;
}

function checkLicences() {
  const problems = [];
  console.log(`Dependencies (${packages.length}):`);
  for (const one of packages) {
    const { name, version, dev = false } = one;
    const licence = licenceOf(one);
    const tool = dev ? TOOLS.find((tool) => tool.licence === licence && isNamed(name, tool.name)) : undefined;
    const isFine = licence !== null && isAllowed(licence);
    const notes = [licence ?? 'no licence', ...(dev ? ['tool'] : []), ...(!isFine && tool ? [tool.why] : [])];
    console.log(`  ${name}@${version}: ${notes.join('; ')}`);
    if (isFine || tool) continue;
    problems.push(
      `${name}@${version} has the licence ${licence ?? '(none told)'}, which is not among ${ALLOWED.join(', ')}`,
    );
  }
  return problems;
}

/** As the lock file tells it, else the package itself, in the field of today or in the one of long ago. */
function licenceOf({ license, place }) {
  if (typeof license === 'string') return license;
  const file = path.join(place, 'package.json');
  const own = existsSync(path.join(folder, file)) ? read(file) : {};
  const told = [own.license ?? [], own.licenses ?? []].flat().map((one) => one.type ?? one);
  return told.length === 0 ? null : told.join(' OR ');
}

/** An SPDX expression: one of the licences of an OR is enough, all of an AND are needed. With WITH it is another licence. */
function isAllowed(expression) {
  return expression
    .replace(/^\((.*)\)$/, '$1')
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((licence) => ALLOWED.includes(licence.replaceAll(/^\(+|\)+$/g, ''))));
}

function isNamed(name, pattern) {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}
