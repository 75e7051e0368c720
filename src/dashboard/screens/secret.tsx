/** Shows a secret that an action has created, in its answer only: the secret is in no address, in no log and on no other page. */
import type { ShownOnce } from '../action.ts';
import type { ScreenView } from '../screen.ts';

export function secretView({ done, secret }: ShownOnce, next: string): ScreenView {
  const body = (
    <div>
      <h1>Copy the key now</h1>
      <p class="notice good" role="status">
        {done.join(' ')} Chandler cannot show it again.
      </p>
      <pre>
        <code>{secret}</code>
      </pre>
      <p>
        <a class="button" href={next}>
          I have copied it
        </a>
      </p>
    </div>
  );
  return { title: 'Copy the key now', body };
}

/** The form was sent a second time, because the visitor loaded the page of the secret again. */
export function alreadySubmitted(next: string): ScreenView {
  const body = (
    <div>
      <h1>This was done already</h1>
      <p class="notice warn" role="status">
        The browser sent the form again, and Chandler did nothing more. It cannot show the key again: if you did not
        copy it, revoke it and create another one.
      </p>
      <p>
        <a class="button" href={next}>
          To the keys
        </a>
      </p>
    </div>
  );
  return { title: 'This was done already', body, status: 400 };
}
