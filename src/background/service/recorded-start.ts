/** Records in the audit log who started a service or `chandler serve`, and with which settings, so that the next start shows changes. */
import { createHash } from 'node:crypto';
import type { App } from '../../app.ts';
import { maskPasswords } from '../../log.ts';
import { type Environment, VARIABLES } from '../../settings.ts';
import { beginAudit, endAudit, OWNER, readSalt, recordMigration, SALT } from '../../store/work/audit.ts';
import { readInstallationId } from '../../store/work/installation.ts';
import type { ServiceContext } from '../service-context.ts';

/** For these variables the whole text is a secret, not only a password in it. */
const SECRETS: ReadonlySet<string> = new Set([
  'CHANDLER_API_KEY',
  'CHANDLER_WEBHOOK_URL',
  'CHANDLER_HEARTBEAT_URL',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
]);

/** Records the start. Resolves to the function that records the end, with the failure if there was one. */
export async function recordStart(
  { start, owner }: Pick<ServiceContext, 'start'> & Partial<Pick<ServiceContext, 'owner'>>,
  app: Pick<App, 'clock' | 'migrated' | 'migratedIn' | 'database'>,
): Promise<(failure?: string | null) => Promise<void>> {
  if (start === undefined) return async () => undefined;
  const { clock, database } = app;
  const { sql } = database;
  const { actor, command, env } = start;
  const { migrated, migratedIn: span } = app;
  await recordMigration(sql, { span, actor, command, migrated });
  // The audit log moves with the warehouse, and readers compare its fingerprints, so a move must not change the salt.
  const salt = (await readSalt(sql)) ?? (await readInstallationId(sql));
  const settings = { ...describeSettings(env, salt), [SALT]: salt, ...(owner === undefined ? {} : { [OWNER]: owner }) };
  const id = await beginAudit(sql, { at: clock.now(), actor, command, settings });
  return (failure = null) => endAudit(sql, { id, endedAt: clock.now(), message: failure });
}

/**
 * The variables that are set, as text that may be stored. For a secret it is only a fingerprint, which shows when the secret changes.
 * `salt`: that of this warehouse.
 */
export function describeSettings(env: Environment, salt: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    VARIABLES.flatMap((name) => {
      const text = env[name]?.trim() ?? '';
      if (text === '') return [];
      const fingerprint = createHash('sha256').update(`${salt} ${name} ${text}`).digest('hex').slice(0, 8);
      return [[name, SECRETS.has(name) ? `(secret, fingerprint ${fingerprint})` : maskPasswords(text)]];
    }),
  );
}
