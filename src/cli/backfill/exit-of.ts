/** The exit code of `chandler backfill`, by the verdict on what was asked for. The table is in docs/configuration.md. */
import { type Ended, type Verdict, verdictOf } from '../../ingest/backfill/verdict.ts';
import { EXIT, type ExitCode } from '../shell/exit.ts';

const EXIT_OF: Readonly<Record<Verdict, ExitCode>> = {
  complete: EXIT.done,
  lacking: EXIT.failed,
  misconfigured: EXIT.usage,
  'work left': EXIT.stoppedEarly,
  interrupted: EXIT.interrupted,
};

/** Of all intervals of a command together, those that had nothing to fetch included. */
export function exitOf(ended: readonly Ended[]): ExitCode {
  return EXIT_OF[verdictOf(ended)];
}
