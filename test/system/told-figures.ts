/** What a service reports to its operator, compared with what happens: when each backfill is done, and whether anything is reported twice. */
import { formatCounted } from '../../src/core/format.ts';
import { readBackfills } from '../../src/views/backfills/backfills.ts';
import type { Hook } from '../support/hook.ts';
import type { ServiceWorld } from '../support/service-world.ts';

/** A look at a backfill in the last half of its time. */
export type FinishFigure = {
  readonly id: number;
  readonly at: number;
  /** How far the forecast end was from the real one, as a part of the backfill's time. */
  readonly off: number;
  /** Nothing was unavailable from then until its end. */
  readonly isCalm: boolean;
};

export type ToldFigures = {
  look(): Promise<void>;
  /** Something is unavailable, or time is skipped, which no forecast can foresee. */
  disturb(): void;
  /** Backfills without a forecast in the last half of their time, because they ended between two looks. */
  readonly unseen: () => number;
  readonly finishes: () => readonly FinishFigure[];
  /** Texts that the webhook received twice, and states that were reported to begin before they were reported to be over. */
  readToldTwice(): Promise<readonly string[]>;
  readonly told: () => number;
};

type Look = { readonly at: number; readonly finishAt: number; isCalm: boolean };

/** The part of a backfill's time by which its forecast end may be off. */
export const FINISH_WITHIN = 0.1;

export function createToldFigures(world: ServiceWorld, hook: Hook): ToldFigures {
  const { sql } = world.database;
  const open = new Map<number, Look[]>();
  const finishes: FinishFigure[] = [];
  let unseen = 0;
  return {
    disturb: () => {
      for (const looks of open.values()) for (const look of looks) look.isCalm = false;
    },
    look: async () => {
      const at = world.clock.now();
      for (const { id, state, isDetached, startedAt, finishedAt, finishAt } of await readBackfills(sql, {
        all: true,
      })) {
        if (!isDetached) continue;
        const looks = open.get(id);
        if (state === 'queued' || state === 'running') {
          if (looks === undefined) open.set(id, []);
          if (state === 'running' && finishAt !== null) open.get(id)!.push({ at, finishAt, isCalm: true });
        } else if (looks !== undefined) {
          open.delete(id);
          if (state !== 'done') continue;
          const took = finishedAt! - startedAt!;
          const late = looks.filter((look) => look.at > finishedAt! - took / 2 && look.at < finishedAt!);
          if (late.length === 0) unseen++;
          for (const look of late) {
            finishes.push({ id, at: look.at, off: Math.abs(look.finishAt - finishedAt!) / took, isCalm: look.isCalm });
          }
        }
      }
    },
    unseen: () => unseen,
    finishes: () => finishes,
    told: () => hook.texts().length,
    readToldTwice: async () => {
      const texts = hook.texts();
      const repeated = [...new Set(texts.filter((text, i) => texts.indexOf(text) < i))];
      const overlapping = await sql<{ text: string }[]>`
        select later.text from ops.notice n join ops.notice later
          on later.topic = n.topic and later.began_at is not null and later.id > n.id
        where n.began_at is not null and (n.ended_at is null or n.ended_at > later.raised_at)`;
      return [...repeated, ...overlapping.map(({ text }) => text)];
    },
  };
}

const percent = (part: number) => `${Math.round(part * 1_000) / 10} %`;

export function describeTold(figures: ToldFigures, toldTwice: readonly string[]): string {
  const lines = [true, false].map((isCalm) => {
    const some = figures.finishes().filter((one) => one.isCalm === isCalm);
    const within = some.filter(({ off }) => off <= FINISH_WITHIN).length;
    const worst = Math.max(0, ...some.map(({ off }) => off));
    const backfills = new Set(some.map(({ id }) => id)).size;
    const when = isCalm ? 'undisturbed' : 'with something away before it';
    return `  told ends of ${formatCounted(backfills, 'backfill')} in the last half of their time, ${when}: ${within} of ${some.length} within ${percent(FINISH_WITHIN)}, at most ${percent(worst)} off`;
  });
  return [
    ...lines,
    `  backfills that were over between two looks: ${figures.unseen()}`,
    `  notices: ${figures.told()}, told twice: ${toldTwice.length}`,
  ].join('\n');
}
