/** The page where operators enter their key. */
import type { Html } from '../html.ts';

type SignIn = {
  /** The page that follows. */
  readonly next: string;
  readonly isWrong?: boolean;
  /** Whether a form was sent after the session had ended. */
  readonly isUndone?: boolean;
};

export function signInForm({ next, isWrong = false, isUndone = false }: SignIn): Html {
  return (
    <div>
      <h1>Sign in</h1>
      {isWrong && (
        <p class="notice bad" role="alert">
          This is not a valid operator key. It may be incomplete, revoked or expired, or a key for callers only.
        </p>
      )}
      {isUndone && (
        <p class="notice" role="alert">
          Nothing was done: your session has ended. Sign in, and confirm again.
        </p>
      )}
      <p>
        To change something here, sign in with an operator key. Create one on the command line:{' '}
        <code>chandler keys create --operator --name you</code>
      </p>
      <form method="post" action="/ui/sign-in" class="filters">
        <input type="hidden" name="next" value={next} />
        <label>
          Operator key
          <input name="key" type="password" required autocomplete="current-password" size={50} />
        </label>
        <button type="submit" class="primary">
          Sign in
        </button>
      </form>
    </div>
  );
}
