/** Home: what needs attention and what the operator can do, the backfills under way, and how the last day's requests ended. */
import { formatCounted, formatInstant } from '../../core/format.ts';
import { readBackfills } from '../../views/backfills/backfills.ts';
import { countBackfills } from '../../views/dashboard/backfill-figures.ts';
import { Bars } from '../parts/bars.tsx';
import { Needs } from '../parts/needs.tsx';
import type { ScreenInput, ScreenView } from '../screen.ts';
import { BackfillTable, ShownOf } from './backfills.tsx';

const MOST_BACKFILLS = 20;
const PARTS = [
  { name: 'answered', kind: 'good' },
  { name: 'refused', kind: 'warn' },
  { name: 'failed', kind: 'bad' },
] as const;

export async function homeScreen({
  deps: { sql, readNeeds, readRequestsByHour },
  now,
}: ScreenInput): Promise<ScreenView> {
  const [needs, backfills, open, { hours, uncountedBefore, most }] = await Promise.all([
    readNeeds(),
    readBackfills(sql, { all: false, limit: MOST_BACKFILLS, now }),
    countBackfills(sql, { all: false }),
    readRequestsByHour(),
  ]);
  const body = (
    <div>
      <h1>Home</h1>
      <section id="needs" data-live aria-labelledby="needs-title">
        <h2 id="needs-title">Needs attention</h2>
        <Needs needs={needs} />
      </section>
      <section id="backfills" data-live>
        <h2>Open backfills</h2>
        <BackfillTable rows={backfills} now={now} empty="No backfill is open." />
        <ShownOf shown={backfills.length} total={open} more={{ text: 'See all', href: '/ui/backfills' }} />
      </section>
      <section id="requests" data-live>
        <h2>Requests of the last 24 hours</h2>
        {uncountedBefore !== null && (
          <p class="soft">
            This chart counts only the last {formatCounted(most, 'request')}, so the hours before{' '}
            {formatInstant(uncountedBefore)} are empty.
          </p>
        )}
        <Bars
          caption="Requests by hour and outcome"
          parts={PARTS}
          bars={hours.map(({ from, stored, refused, failed }) => ({ from, counts: [stored, refused, failed] }))}
        />
      </section>
    </div>
  );
  return { title: 'Home', body };
}
