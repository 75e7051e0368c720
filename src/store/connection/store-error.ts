/** Explains failures of Postgres and of the way to it, each in one sentence that says what went wrong and how to fix it. */

/** A failure that its reader can fix. `message` is the whole sentence; `hint` is its second half, which says how to fix it. */
export class StoreError extends Error {
  readonly hint: string;
  /** True if a setting names something that does not exist or may not be used. Then a retry does not help; another setting does. */
  readonly isConfiguration: boolean;

  constructor(problem: string, hint: string, cause?: unknown, isConfiguration = false) {
    super(`${problem}; ${hint}`, cause === undefined ? undefined : { cause });
    this.name = 'StoreError';
    this.hint = hint;
    this.isConfiguration = isConfiguration;
  }

  /** The same error with the name of another setting, in place of `DATABASE_URL`. */
  of(setting: string): StoreError {
    const said = (text: string) => text.replaceAll(/\bDATABASE_URL\b/g, setting);
    const problem = this.message.slice(0, -`; ${this.hint}`.length);
    return new StoreError(said(problem), said(this.hint), this.cause, this.isConfiguration);
  }

  /** The whole sentence for a service, which retries automatically: the operator need not run a command again. */
  get messageOfService(): string {
    return this.message.replaceAll('run the command again', 'Chandler continues automatically');
  }
}

/** The address without its secrets, so that it may be printed. In text that is no URL, `***` replaces all before the last `@`. */
export function maskUrl(url: string): string {
  if (!URL.canParse(url)) return url.replace(/^(\w+:\/\/)?.*@/, '$1***@');
  const parsed = new URL(url);
  if (parsed.password !== '') parsed.password = '***';
  for (const name of parsed.searchParams.keys()) {
    if (/pass|key|secret|token/i.test(name)) parsed.searchParams.set(name, '***');
  }
  return parsed.href;
}

/** An invalid address, a server that is not Postgres, a wrong password, a missing role or database. */
const WRONG_SETTING: ReadonlySet<string> = new Set(['ERR_INVALID_URL', 'NOT_POSTGRES', '28P01', '28000', '3D000']);

/** The same failure as a `StoreError`. Null when an operator cannot fix it: then it is a fault of ours, and the caller rethrows it. */
export function explainDatabaseError(error: unknown, url: string): StoreError | null {
  for (let e: unknown = error, depth = 0; e instanceof Error && depth < 8; e = e.cause, depth++) {
    if (e instanceof StoreError) return e;
    const code = 'code' in e ? String(e.code) : '';
    const known = explainCode(code, e, url);
    if (known) return new StoreError(known[0], known[1], error, WRONG_SETTING.has(code));
  }
  return null;
}

/** What went wrong, and how to fix it. Null when it is not about the database. */
type Explained = [problem: string, hint: string] | null;

function explainCode(code: string, error: Error, url: string): Explained {
  if (code === 'ERR_INVALID_URL') {
    return [
      `DATABASE_URL '${maskUrl(url)}' is not an address`,
      'it should look like postgres://user@host:5432/database',
    ];
  }
  const parsed = URL.canParse(url) ? new URL(url) : null;
  const host = parsed?.hostname ?? maskUrl(url);
  const port = parsed?.port || '5432';
  const at = parsed ? `${host}:${port}` : host;
  const sslmode = `sslmode=${parsed?.searchParams.get('sslmode') ?? 'verify-ca'}`;
  const user = decode(parsed?.username ?? '');
  const database = decode(parsed?.pathname.slice(1) ?? '');
  return (
    explainNetwork(code, error, { at, host }) ??
    explainTls(code, { at, sslmode }) ??
    explainServer(code, error, { at, host, port, user, database })
  );
}

/** Explains errors of the system or the driver on the way to the server. */
function explainNetwork(code: string, error: Error, { at, host }: { at: string; host: string }): Explained {
  switch (code) {
    case 'ECONNREFUSED':
      return [
        `no Postgres answers at ${at} (connection refused)`,
        'start it, or correct host and port in DATABASE_URL',
      ];
    case 'ENOENT':
    case 'EACCES':
      if (!('syscall' in error) || error.syscall !== 'connect') return null;
      return [`no Postgres answers at ${at} (${code})`, 'start it, or correct host and port in DATABASE_URL'];
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return [`the host ${host} of DATABASE_URL cannot be found`, 'correct the name, or the name server'];
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'ETIMEDOUT':
    case 'CONNECT_TIMEOUT':
      return [`Postgres at ${at} does not answer`, 'check host and port in DATABASE_URL, and the firewall between'];
    case 'ECONNRESET':
    case 'EPIPE':
    case 'CONNECTION_CLOSED':
    case 'CONNECTION_DESTROYED':
    case 'CONNECTION_ENDED':
    case '25P03':
      return [`the connection to Postgres at ${at} was lost`, 'run the command again; nothing stored is lost'];
    case 'NOT_POSTGRES':
      return [`what answers at ${at} is not Postgres`, 'correct host and port in DATABASE_URL'];
    default:
      return null;
  }
}

function explainTls(code: string, { at, sslmode }: { at: string; sslmode: string }): Explained {
  if (code === 'TLS_NOT_OFFERED') {
    return [
      `Postgres at ${at} offers no TLS, which ${sslmode} of DATABASE_URL asks for`,
      'turn TLS on at the server, or write sslmode=disable where nobody can listen',
    ];
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return [
      `the certificate of Postgres at ${at} is for another host, which ${sslmode} of DATABASE_URL does not allow`,
      'correct the host in DATABASE_URL, or write sslmode=verify-ca',
    ];
  }
  if (/^(CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(code)) {
    return [
      `the certificate of Postgres at ${at} cannot be trusted (${code}), which ${sslmode} of DATABASE_URL does not allow`,
      'name the file of the authority that signed it with sslrootcert=…, or write sslmode=require to encrypt without checking it',
    ];
  }
  if (/^(EPROTO$|ERR_SSL|ERR_TLS)/.test(code)) {
    return [
      `TLS with Postgres at ${at}, which ${sslmode} of DATABASE_URL asks for, cannot be set up (${code})`,
      'correct host and port in DATABASE_URL, or the TLS settings of the server',
    ];
  }
  return null;
}

type Login = { at: string; host: string; port: string; user: string; database: string };

/** Finds the sessions that hold locks on our tables, the oldest transaction first. It also works when nobody waits for the lock any more. */
const FIND_HOLDERS =
  "select pid, usename, application_name, state, xact_start from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and pid in (select pid from pg_locks where granted and relation in (select oid from pg_class where relnamespace::regnamespace::text in ('market', 'ops'))) order by xact_start";

/** Explains errors of Postgres itself. */
function explainServer(code: string, { message }: Error, { at, host, port, user, database }: Login): Explained {
  switch (code) {
    case '57P01':
    case '57P02':
    case '57P03':
      return [
        `Postgres at ${at} is starting up or shutting down`,
        'run the command again in a moment; nothing stored is lost',
      ];
    case '28P01':
      return [`Postgres at ${at} refuses the password of user '${user}'`, 'correct it in DATABASE_URL'];
    case '28000':
      if (/no encryption|SSL off/.test(message)) {
        return [
          `Postgres at ${at} lets user '${user}' in only with TLS`,
          'add sslmode=require to DATABASE_URL, after a ?',
        ];
      }
      return [
        `Postgres at ${at} does not let user '${user}' in (${message})`,
        'correct the user in DATABASE_URL, or the rules in pg_hba.conf',
      ];
    case '3D000':
      return [
        `the database '${database}' does not exist on ${at}`,
        `make it with: createdb -h ${host} -p ${port} ${database}, or correct DATABASE_URL`,
      ];
    case '55P03':
      return [
        `another session of the database '${database}' holds a lock that Chandler needs`,
        `find it with: ${FIND_HOLDERS}; let it end its transaction, or end it. If nothing is found, the lock was released: run the command again`,
      ];
    case '40001':
      return [
        `the standby at ${at} ended a statement, to apply what the primary has removed`,
        'run the command again; for long statements set hot_standby_feedback = on there, or a longer max_standby_streaming_delay',
      ];
    case '57014':
      // Postgres uses the same code when somebody cancels a statement.
      if (!/statement timeout/.test(message)) return null;
      return [
        `Postgres at ${at} ended a statement of user '${user}' that took longer than its statement_timeout`,
        'raise or remove that limit: in the options of DATABASE_URL, or of the login, the database or the server',
      ];
    case '53300':
      return [`Postgres at ${at} has no connection left`, 'raise its max_connections, or run fewer processes'];
    case '53100':
      return [`the disk of Postgres at ${at} is full`, 'make room and run the command again; nothing stored is lost'];
    case '25006':
      return [`Postgres at ${at} is read-only (a standby?)`, 'point DATABASE_URL at the primary'];
    case '42501':
      return [
        `user '${user}' of DATABASE_URL may not do this in database '${database}' (${message})`,
        message.includes('for database')
          ? `let its owner run: grant create on database "${database}" to "${user}"`
          : 'give DATABASE_URL the user who owns the schemas market and ops, or let that user grant the right',
      ];
    default:
      return null;
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    // The text is only shown, so a stray % stays as it was typed.
    return part;
  }
}
