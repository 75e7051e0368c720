/** The exit code of `chandler backfill`, from the verdict on the requested slots. The table is in docs/configuration.md. */
import { type Ended, type Verdict, verdictOf } from '../../ingest/backfill/verdict.ts';
import { EXIT, type ExitCode } from '../shell/exit.ts';

const EXIT_OF: Readonly<Record<Verdict, ExitCode>> = {
  complete: EXIT.done,
  lacking: EXIT.failed,
  misconfigured: EXIT.usage,
  'work left': EXIT.stoppedEarly,
  interrupted: EXIT.interrupted,
};

/** For all intervals of a command together, including those that had nothing to fetch. */
export function exitOf(ended: readonly Ended[]): ExitCode {
  return EXIT_OF[verdictOf(ended)];
}
