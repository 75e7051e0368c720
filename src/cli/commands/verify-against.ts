/** `chandler verify --against`: compares the warehouse with an attestation. Exits 1 when something cannot be explained. */
import { openAttestation, readPublicKey } from '../../background/attestation/attestation-file.ts';
import { formatCounted, formatInstant, toIso } from '../../core/format.ts';
import type { Retention } from '../../core/settings/retention-settings.ts';
import { type Restore, readRestoreOver } from '../../store/backup/target.ts';
import type { Sql } from '../../store/connection/connect.ts';
import type { CheckedFile } from '../../views/attestation/check-file.ts';
import { compare } from '../../views/attestation/compare.ts';
import { type Finding, VERDICTS, type Verdict } from '../../views/attestation/finding.ts';
import { startBar } from '../output/bar.ts';
import { EXIT, type ExitCode } from '../shell/exit.ts';
import type { Io, Output } from '../shell/io.ts';
import { printJson } from '../shell/json.ts';

type AgainstOptions = { readonly against: string; readonly key?: string; readonly json?: boolean };

/** The output lists at most so many findings that are neither equal nor grown. The counts include all. */
const MOST_SHOWN = 1000;

type Comparison = {
  readonly checked: CheckedFile;
  readonly counts: Readonly<Record<Verdict, number>>;
  readonly shown: readonly Finding[];
};

type Terms = { readonly keep: Retention; readonly now: number };

/** @throws ConfigurationError for a file or key that cannot be read, DamagedAttestation for an attestation that fails its own checks */
export async function verifyAgainst(io: Io, sql: Sql, options: AgainstOptions, terms: Terms): Promise<ExitCode> {
  const comparison = await compareWith(io.err, sql, options, terms);
  const restore = isUntouched(comparison) ? null : await readRestoreOver(sql, comparison.checked.at);
  if (options.json) printJson(io.out, { ...comparisonAsJson(comparison), restored: restoreAsJson(restore) });
  else {
    print(io.out, comparison);
    if (restore !== null) io.out.write(restoreText(restore));
  }
  return isUntouched(comparison) ? EXIT.done : EXIT.failed;
}

export function isUntouched({ counts }: Comparison): boolean {
  return counts.tampered === 0;
}

/** @throws ConfigurationError for a file or key that cannot be read, DamagedAttestation for an attestation that fails its own checks */
export async function compareWith(
  err: Output,
  sql: Sql,
  { against, key }: AgainstOptions,
  { keep, now }: Terms,
): Promise<Comparison> {
  const publicKey = key === undefined ? null : await readPublicKey(key, '--key');
  const { checked, facts } = await openAttestation(against, '--against', publicKey);
  const counts = Object.fromEntries(VERDICTS.map((verdict) => [verdict, 0])) as Record<Verdict, number>;
  const shown: Finding[] = [];
  const bar = await startBar(err, 'lines', async () => checked.facts);
  try {
    for await (const found of compare(
      sql,
      facts(() => bar.add(1)),
      { keep, at: checked.at, now },
    )) {
      counts[found.verdict]++;
      const isNews = found.verdict !== 'equal' && found.verdict !== 'grown';
      if (isNews && (found.verdict === 'tampered' || shown.length < MOST_SHOWN / 2) && shown.length < MOST_SHOWN)
        shown.push(found);
    }
  } finally {
    bar.stop();
  }
  return { checked, counts, shown };
}

export function comparisonAsJson({ checked: { at, root, signature }, counts, shown }: Comparison) {
  return { at: toIso(at), root, signature, isTampered: counts.tampered > 0, counts, findings: shown };
}

function restoreAsJson(restore: Restore | null) {
  return restore && { at: toIso(restore.at), backupAt: restore.backupAt === null ? null : toIso(restore.backupAt) };
}

function restoreText({ at, backupAt }: Restore): string {
  const backup = backupAt === null ? 'a backup' : `a backup that was begun at ${formatInstant(backupAt)}`;
  return `
The log has a restore at ${formatInstant(at)}, of ${backup}. What was stored between backup and restore is
missing here, so an attestation from that time does not match. Compare with the attestation beside the backup, or with an
older one: these must match.
(Anyone who can write to the database can also write to its log.)
`;
}

const SIGNATURES: Readonly<Record<CheckedFile['signature'], string>> = {
  checked: 'signed by the given key',
  'not checked': 'signed; to check who signed it, give --key with the public key of its owner',
  none: 'not signed',
};

function print(out: Output, { checked, counts, shown }: Comparison): void {
  out.write(`attestation of ${formatInstant(checked.at)}, root ${checked.root}, ${SIGNATURES[checked.signature]}\n\n`);
  for (const { subject, month, verdict, detail } of shown)
    out.write(`${verdict}: ${subject}${month === null ? '' : ` ${month}`}: ${detail}\n`);
  const found = VERDICTS.filter((verdict) => counts[verdict] > 0).map((verdict) => `${counts[verdict]} ${verdict}`);
  const news = VERDICTS.reduce(
    (sum, verdict) => (verdict === 'equal' || verdict === 'grown' ? sum : sum + counts[verdict]),
    0,
  );
  if (news > shown.length) out.write(`and ${formatCounted(news - shown.length, 'finding')} more\n`);
  if (shown.length > 0) out.write('\n');
  out.write(`months of series, and tables: ${found.join(', ')}\n`);
  out.write(
    counts.tampered === 0
      ? 'Nothing that was attested was tampered with.\n'
      : 'The warehouse differs from what was attested, and no record explains why.\n',
  );
}
