/** An action before it runs: what it means, what it costs, and the button. */
import type { FC } from 'hono/jsx';
import { formatCounted } from '../../core/format.ts';
import { newFormId } from '../access/single-use-form.ts';
import type { Visitor } from '../access/visitor.ts';
import type { Intended } from '../action.ts';
import { rangeOfTime } from '../parts/moment.tsx';

type ConfirmProps = {
  readonly intended: Intended;
  /** The address of the action with its arguments. */
  readonly path: string;
  readonly visitor: Visitor;
  /** Whether the operator has confirmed a lower price. */
  readonly isDearer: boolean;
};

export const Confirm: FC<ConfirmProps> = ({ intended, path, visitor, isDearer }) => (
  <div>
    <h1>{intended.question}</h1>
    {isDearer && <p class="notice">Nothing was done: it now costs more than the page showed. Confirm the new cost.</p>}
    {intended.sentences.map((sentence) => (
      <p>{sentence}</p>
    ))}
    <p>
      <strong>{priceOf(intended)}</strong>
    </p>
    <p class="soft">
      On the command line: <code>{intended.command.join(' ')}</code>
    </p>
    {visitor.operator === null ? (
      <p class="notice">
        Only an operator may do this. <a href={`/ui/sign-in?next=${encodeURIComponent(path)}`}>Sign in</a> to continue.
      </p>
    ) : (
      <form method="post" action={path} class="actions">
        <input type="hidden" name="token" value={visitor.operator.formToken} />
        <input type="hidden" name="requests" value={String(intended.requests)} />
        {intended.makesSecret ? <input type="hidden" name="once" value={newFormId()} /> : ''}
        <button type="submit" class="primary">
          {intended.verb}
        </button>
        <a class="button" href={intended.next}>
          Back
        </a>
      </form>
    )}
  </div>
);

/** `It costs 41 requests, done about 14:20.` */
function priceOf({ requests, done }: Pick<Intended, 'requests' | 'done'>): string {
  if (requests === 0) return 'It costs no requests now.';
  const end = done ? `, done ${rangeOfTime(done.from, done.to)}` : '';
  return `It costs ${formatCounted(requests, 'request')}${end}.`;
}
