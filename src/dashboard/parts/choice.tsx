/** A list of values from which a visitor selects one. */
import type { FC } from 'hono/jsx';

export const Choice: FC<{
  readonly name: string;
  readonly label: string;
  readonly value: string;
  /** A value that is shown as itself, or with its text. */
  readonly options: readonly (string | readonly [value: string, text: string])[];
}> = ({ name, label, value, options }) => (
  <label>
    {label}
    <select name={name}>
      {options
        .map((option) => (typeof option === 'string' ? [option, option] : option))
        .map(([one, text]) => (
          <option value={one} selected={one === value}>
            {text}
          </option>
        ))}
    </select>
  </label>
);
