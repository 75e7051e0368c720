/** `chandler log`: who changed something, when, and how it ended. */
import type { Command } from 'commander';
import type { Instant } from '../../clock.ts';
import { formatTime } from '../../contract/time.ts';
import { formatDuration, formatInstant } from '../../core/format.ts';
import { type AuditedCommand, type RecordedSettings, readAudit } from '../../store/work/audit.ts';
import { integer } from '../input/options.ts';
import { pastOption } from '../input/time.ts';
import { printTable, text, whole } from '../output/table.ts';
import type { CommandContext } from '../shell/context.ts';
import type { Output } from '../shell/io.ts';

const ENTRIES = 50;

type Options = { readonly since?: Instant; readonly limit?: number };

export function logCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('log')
    .description('show which commands changed something, who ran them, and how they ended; the newest is last')
    .option('--since <T>', 'a date, a date-time with its zone, or -7d', (given) =>
      pastOption('--since', given, context.clock.now()),
    )
    .option('--limit <n>', `show at most n entries (default: ${ENTRIES})`, integer(1, 100_000));
  context.answer(command, async ({ database: { sql } }, { since, limit = ENTRIES }: Options) => {
    const commands = await readAudit(sql, { since: since ?? null, limit });
    return { json: () => commands.map(asJson), text: (out) => print(out, commands) };
  });
}

function changedSettings({ settings, settingsBefore }: AuditedCommand): readonly string[] {
  return settings === null || settingsBefore === null ? [] : changesBetween(settingsBefore, settings);
}

/** `CHANDLER_PLAN free → pro`, in the order of the names. */
function changesBetween(before: RecordedSettings, now: RecordedSettings): readonly string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(now)])].sort();
  return names
    .filter((name) => before[name] !== now[name])
    .map((name) => `${name} ${before[name] ?? 'not set'} → ${now[name] ?? 'not set'}`);
}

function asJson(entry: AuditedCommand) {
  const { id, at, actor, command, endedAt, message, settings } = entry;
  return {
    ...{ id, at: formatTime(at), actor, command },
    endedAt: endedAt === null ? null : formatTime(endedAt),
    message,
    ...(settings === null ? {} : { settings, changed: changedSettings(entry) }),
  };
}

function print(out: Output, entries: readonly AuditedCommand[]): void {
  if (entries.length === 0) {
    out.write('No command has changed anything yet, or none since then.\n');
    return;
  }
  printTable(out, entries, [
    whole('when', ({ at }) => formatInstant(at)),
    whole('who', ({ actor }) => actor),
    text('what', ({ command }) => command),
    text('how it ended', howItEnded),
  ]);
}

function howItEnded(entry: AuditedCommand): string {
  const { at, endedAt, message } = entry;
  const changed = changedSettings(entry);
  const settings = changed.length === 0 ? '' : `settings changed: ${changed.join('; ')}; `;
  if (endedAt === null) return `${settings}has not ended, or was killed`;
  return `${settings}${message ?? `done in ${formatDuration(endedAt - at)}`}`;
}
