/** All facts about one thing, each next to its name. */
import type { Child, FC } from 'hono/jsx';

/** A fact with a null value is left out. */
export type Fact = readonly [name: string, value: Child];

export const Facts: FC<{ readonly facts: readonly Fact[] }> = ({ facts }) => (
  <dl>
    {facts.map(
      ([name, value]) =>
        value !== null && (
          <>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </>
        ),
    )}
  </dl>
);
