/** One check of `chandler doctor`. */

type CheckState = 'ok' | 'warn' | 'fail';

export type Check = {
  readonly name: string;
  readonly state: CheckState;
  readonly found: string;
  /** How to fix it. Absent when nothing is wrong. */
  readonly fix?: string;
};

export const ok = (name: string, found: string): Check => ({ name, state: 'ok', found });
export const warn = (name: string, found: string, fix: string): Check => ({ name, state: 'warn', found, fix });
export const fail = (name: string, found: string, fix: string): Check => ({ name, state: 'fail', found, fix });

/** A failed check from the message of an error, whose semicolon separates the problem from the fix. */
export function failWith(name: string, message: string): Check {
  const [found, ...rest] = message.split('; ');
  return { name, state: 'fail', found: found!, ...(rest.length > 0 ? { fix: rest.join('; ') } : {}) };
}
