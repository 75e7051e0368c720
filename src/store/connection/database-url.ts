/** Checks `DATABASE_URL`, reports what is wrong with it, and parses it for both of our drivers. */
import { readFileSync } from 'node:fs';
import type { ConnectionOptions as TlsOptions } from 'node:tls';
import { didYouMean } from '../../core/settings/did-you-mean.ts';
import { maskUrl, StoreError } from './store-error.ts';

/** Setting that names a second Postgres, from which the service reads. */
export const SERVE_DATABASE_URL = 'CHANDLER_SERVE_DATABASE_URL';

/** Parameters allowed after the `?`, with the names and meanings of psql. A driver would send any other one to the server as a setting. */
const PARAMETERS = ['sslmode', 'sslrootcert', 'application_name', 'options', 'connect_timeout', 'channel_binding'];
/** Without `allow` and `prefer`, which leave open whether the connection is encrypted. */
const SSL_MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const;
const RIGHT =
  'DATABASE_URL should look like postgres://user@host:5432/database, with :password behind the user where it has one';

/** A parsed address, in the form that a driver needs. */
type DatabaseAddress = {
  /** Without brackets around an IPv6 address. */
  readonly host: string;
  readonly port: number;
  /** Undefined means the default of the driver, from the environment or the system. */
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly database: string;
  readonly ssl: TlsOptions | false;
  readonly applicationName: string | undefined;
  /** Settings for the server: `-c name=value …`. */
  readonly options: string | undefined;
  readonly connectTimeoutSeconds: number | undefined;
};

/** An error in the setting, which a retry does not solve. */
function wrong(problem: string, right: string, cause?: unknown): StoreError {
  return new StoreError(problem, right, cause, true);
}

/** @throws StoreError when `url` is not `postgres://user@host/database` (several hosts, comma-separated, are not supported). */
export function checkDatabaseUrl(url: string): URL {
  const shown = `'${maskUrl(url)}'`;
  if (!URL.canParse(url)) throw wrong(`DATABASE_URL ${shown} is not an address`, RIGHT);
  const parsed = new URL(url);
  if (parsed.protocol !== 'postgres:' && parsed.protocol !== 'postgresql:') {
    throw wrong(`DATABASE_URL ${shown} is not a Postgres address`, RIGHT);
  }
  if (parsed.hostname === '') throw wrong(`DATABASE_URL ${shown} names no host`, RIGHT);
  if (parsed.hostname.includes(',')) {
    throw wrong(`DATABASE_URL ${shown} names several hosts`, 'write the one that can be written to');
  }
  if (parsed.pathname.length < 2) throw wrong(`DATABASE_URL ${shown} names no database`, RIGHT);
  for (const part of [parsed.username, parsed.password, parsed.pathname, parsed.hostname]) {
    try {
      decodeURIComponent(part);
    } catch (error) {
      throw wrong(`DATABASE_URL ${shown} has a % that is not followed by two hex digits`, 'write % as %25', error);
    }
  }
  checkParameters(parsed, shown);
  return parsed;
}

function checkParameters({ searchParams, hash }: URL, address: string): void {
  const wrongUrl = (problem: string, right: string) => wrong(`DATABASE_URL ${address} ${problem}`, right);
  if (hash !== '') throw wrongUrl('has a # with something after it', 'write # as %23 where it belongs to a password');
  for (const name of new Set(searchParams.keys())) {
    const values = searchParams.getAll(name);
    if (values.length > 1) throw wrongUrl(`gives ${name} ${values.length} times`, 'give it once');
    const value = values[0]!;
    const shown = `${name}=${JSON.stringify(value)}`;
    switch (name) {
      case 'sslmode': {
        if ((SSL_MODES as readonly string[]).includes(value)) break;
        const open = value === 'prefer' || value === 'allow';
        const why = open
          ? 'which leaves open whether the connection is encrypted'
          : 'which is none that Chandler knows';
        throw wrongUrl(
          `has ${shown}, ${why}`,
          `write one of ${SSL_MODES.join(', ')}${open ? '' : didYouMean(value, SSL_MODES)}`,
        );
      }
      case 'connect_timeout':
        if (!/^[1-9]\d{0,3}$/.test(value))
          throw wrongUrl(`has ${shown}`, 'it must be a whole number of seconds from 1 to 9999');
        break;
      case 'channel_binding':
        if (value === 'disable' || value === 'prefer') break;
        throw wrongUrl(
          `has ${shown}, which Chandler cannot do`,
          'write sslmode=verify-full, which is as safe, and leave channel_binding out',
        );
      case 'sslrootcert':
      case 'application_name':
      case 'options':
        if (value === '') throw wrongUrl(`has an empty ${name}`, 'give it a value, or leave it out');
        break;
      default: {
        const hint = didYouMean(name, PARAMETERS);
        throw wrongUrl(
          `has the parameter ${name}, which Chandler does not know${hint}`,
          `there are ${PARAMETERS.join(', ')}; a setting of the server goes into options, like options=-c%20statement_timeout%3D60000`,
        );
      }
    }
  }
}

/** @throws StoreError when the address is wrong, or the file of `sslrootcert` cannot be read. */
export function readDatabaseUrl(url: string): DatabaseAddress {
  const { hostname, port, username, password, pathname, searchParams } = checkDatabaseUrl(url);
  const seconds = searchParams.get('connect_timeout');
  // URLs write IPv6 addresses in brackets; sockets need them without.
  const host = decodeURIComponent(hostname).replace(/^\[(.*)\]$/, '$1');
  return {
    host,
    port: port === '' ? 5432 : Number(port),
    user: username === '' ? undefined : decodeURIComponent(username),
    password: password === '' ? undefined : decodeURIComponent(password),
    database: decodeURIComponent(pathname.slice(1)),
    ssl: readTls(searchParams, host, url),
    applicationName: searchParams.get('application_name') ?? undefined,
    options: searchParams.get('options') ?? undefined,
    connectTimeoutSeconds: seconds === null ? undefined : Number(seconds),
  };
}

/** Works like libpq: a certificate file is used if there is one, and `system` stands for the authorities that Node trusts. */
function readTls(parameters: URLSearchParams, host: string, url: string): TlsOptions | false {
  const mode = parameters.get('sslmode');
  const rootCert = parameters.get('sslrootcert');
  if (mode === 'disable') return false;
  if (mode === null && rootCert === null) return false;
  const ca = rootCert === null || rootCert === 'system' ? {} : { ca: readAuthority(rootCert, url) };
  if (mode === 'verify-full' || rootCert === 'system') {
    // Both drivers omit the name if it is an IP address, and Node would then look for "localhost" in the certificate.
    return { rejectUnauthorized: true, host, ...ca };
  }
  if (mode === 'verify-ca' || rootCert !== null) {
    return { rejectUnauthorized: true, checkServerIdentity: () => undefined, ...ca };
  }
  return { rejectUnauthorized: false };
}

function readAuthority(file: string, url: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'no reason given';
    throw wrong(
      `DATABASE_URL '${maskUrl(url)}' names a file as sslrootcert that cannot be read (${code})`,
      'give the file that holds the certificate of the authority, or system',
      error,
    );
  }
}

/** The same address for other programs: SQLAlchemy, and so pandas, does not accept `postgres:`. */
export function addressForOthers(url: string): string {
  return url.replace(/^postgres:/, 'postgresql:');
}
