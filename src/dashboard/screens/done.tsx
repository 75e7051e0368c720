/** The operator's action on the page before, shown above the page with its result. */
import { LRUCache } from 'lru-cache';
import type { Sql } from '../../store/connection/connect.ts';
import { findAudit } from '../../store/work/audit.ts';
import type { Visitor } from '../access/visitor.ts';
import type { Html } from '../html.ts';

/** The sentences of each action, by its entry in the audit log. Another process does not have them, and shows only the command. */
const said = new LRUCache<number, readonly string[]>({ max: 500 });

export function rememberDone(id: number, sentences: readonly string[]): void {
  said.set(id, sentences);
}

/** Null when the address names no entry of the audit log, or when this visitor may not see it. */
export async function doneNotice(sql: Sql, { operator }: Visitor, id: string | undefined): Promise<Html | null> {
  if (operator === null || id === undefined || !/^\d{1,15}$/.test(id)) return null;
  const entry = await findAudit(sql, Number(id));
  if (entry === null || entry.actor !== `${operator.name} (dashboard)`) return null;
  const { command, message, endedAt } = entry;
  if (message !== null)
    return (
      <p class="notice bad" role="status">
        <code>{command}</code> failed: {message}
      </p>
    );
  const sentences = said.get(Number(id)) ?? [endedAt === null ? 'It is running.' : 'Done.'];
  return (
    <p class="notice good" role="status">
      {sentences.join(' ')} <code>{command}</code>
    </p>
  );
}
