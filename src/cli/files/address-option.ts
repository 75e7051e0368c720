/** Options that name a folder or `s3://bucket/prefix`, and how a command reports the errors of that place. */
import { type Address, parseAddress } from '../../lake/destination/address.ts';
import { DestinationError } from '../../lake/destination/destination-error.ts';
import { CommandFailed, UsageError } from '../shell/exit.ts';

/** @throws UsageError when it is neither */
export function addressOption(option: string, text: string): Address {
  const read = parseAddress(text);
  if ('ok' in read) return read.ok;
  throw new UsageError(`${option} ${read.shown ?? text}, ${read.problem}.`);
}

/** Turns an error of the destination into one that ends the command. Returns other errors unchanged. */
export function asCommandError(option: string, error: unknown): unknown {
  if (!(error instanceof DestinationError)) return error;
  const text = `${option}: ${error.message}; ${error.remedy}.`;
  return error.fault === 'refused' ? new UsageError(text) : new CommandFailed(text);
}
