/** A destination could not be read or written. The message names the place and the reason, and never a key. */

export type DestinationFault =
  /** The destination does not answer, or says that it cannot now. The same request may succeed later. */
  | 'unavailable'
  /** The destination does not exist, or denies access. Somebody has to correct a setting first. */
  | 'refused';

export class DestinationError extends Error {
  override readonly name = 'DestinationError';
  readonly fault: DestinationFault;
  /** What would help; a sentence without a full stop. */
  readonly remedy: string;

  constructor(fault: DestinationFault, message: string, remedy: string, cause?: unknown) {
    super(message, { cause });
    this.fault = fault;
    this.remedy = remedy;
  }
}
