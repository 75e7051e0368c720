/** Passes `DATABASE_URL` to Postgres' own programs through the environment, so that `ps` shows no password. */
import { readDatabaseUrl } from './database-url.ts';

/** Values that the address does not set are left out, so the user's environment decides them. */
export function libpqEnvironment(url: string, applicationName: string): Readonly<Record<string, string>> {
  const address = readDatabaseUrl(url);
  const { searchParams } = new URL(url);
  const rootCert = searchParams.get('sslrootcert');
  // With a certificate and no mode, Chandler checks the certificate; libpq would not.
  const mode = searchParams.get('sslmode') ?? (rootCert === null ? null : 'verify-ca');
  const values = {
    PGHOST: address.host,
    PGPORT: String(address.port),
    PGDATABASE: address.database,
    PGUSER: address.user,
    PGPASSWORD: address.password,
    PGSSLMODE: mode,
    PGSSLROOTCERT: rootCert,
    PGCHANNELBINDING: searchParams.get('channel_binding'),
    PGOPTIONS: address.options,
    PGCONNECT_TIMEOUT: address.connectTimeoutSeconds?.toString(),
    PGAPPNAME: address.applicationName ?? applicationName,
  };
  return Object.fromEntries(Object.entries(values).filter((entry): entry is [string, string] => entry[1] != null));
}
