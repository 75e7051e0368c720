/** One thing that `chandler doctor` looked at. */

export type CheckState = 'ok' | 'warn' | 'fail';

export type Check = {
  readonly name: string;
  readonly state: CheckState;
  /** What was found. */
  readonly found: string;
  /** What would mend it; none when nothing has to be. */
  readonly fix?: string;
};

export const ok = (name: string, found: string): Check => ({ name, state: 'ok', found });
export const warn = (name: string, found: string, fix: string): Check => ({ name, state: 'warn', found, fix });
export const fail = (name: string, found: string, fix: string): Check => ({ name, state: 'fail', found, fix });

/** An error's sentence, cut where this house joins what is wrong and what would be right. */
export function failWith(name: string, message: string): Check {
  const [found, ...rest] = message.split('; ');
  return { name, state: 'fail', found: found!, ...(rest.length > 0 ? { fix: rest.join('; ') } : {}) };
}
