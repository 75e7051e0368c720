/** A page that shows only a message. */
import type { Child } from 'hono/jsx';

export function messagePage(title: string, message: Child, status: 400 | 404 | 429) {
  const body = (
    <div>
      <h1>{title}</h1>
      <p>{message}</p>
    </div>
  );
  return { title, status, body };
}
