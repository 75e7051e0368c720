/**
 * What every page does in the browser: it follows the changes that the server tells of, asks for itself again, and puts in the parts that
 * are not the same any more. A page that nobody can see does nothing.
 */

/** Parts of a page with this attribute and an id are replaced when they change. */
const LIVE = '[data-live][id]';
/** Many changes that come at once are one. */
const SETTLE_MS = 400;
/** While data come in all the time, a page is made anew so often at most. */
const EVERY_MS = 5_000;
const RETRY_MS = 5_000;
/** What the visitor has opened or chosen. */
const KEPT = ['open', 'value'];
const SIGNED_OUT = 'You are signed out. Open the page again to sign in.';
/** A page that could not be shown. */
const UNSHOWN = '[data-unshown]';

let events: EventSource | null = null;
let isRefreshing = false;
/**
 * A form was sent, and its answer will replace this page. Until this instant the page does not refresh itself: what it would ask for may not exist any
 * more. After it, the answer is not expected.
 */
let leavingUntil = Number.NEGATIVE_INFINITY;
const LEAVING_MS = 30_000;
const isLeaving = () => performance.now() < leavingUntil;
let refreshedAt = Number.NEGATIVE_INFINITY;
/** The address is that of the part as it was last received: the browser may have changed the part itself since. */
const received = new Map<string, string>();

for (const part of document.querySelectorAll(LIVE)) received.set(part.id, part.innerHTML);
document.addEventListener('visibilitychange', follow);
document.addEventListener('submit', ({ defaultPrevented }) => {
  if (!defaultPrevented) leavingUntil = performance.now() + LEAVING_MS;
});
// The browser shows the page again, as after Back.
addEventListener('pageshow', () => {
  leavingUntil = Number.NEGATIVE_INFINITY;
});
// Before the scripts of the screen hear of it: on paper, canvases have the light colours as well.
addEventListener('beforeprint', () => document.documentElement.setAttribute('data-paper', ''));
addEventListener('afterprint', () => document.documentElement.removeAttribute('data-paper'));
follow();
if (document.querySelector(UNSHOWN) !== null) setTimeout(() => location.replace(location.href), RETRY_MS);

function follow(): void {
  if (document.hidden) {
    events?.close();
    events = null;
    return;
  }
  if (events !== null) return;
  const wasFollowing = received.size > 0 && document.body.dataset.followed === 'true';
  events = new EventSource('/ui/events');
  events.addEventListener('open', () => {
    tell(null);
    // What has changed while nobody looked.
    if (wasFollowing || document.body.dataset.lost === 'true') refreshSoon();
    document.body.dataset.followed = 'true';
    document.body.dataset.lost = 'false';
  });
  events.addEventListener('changed', refreshSoon);
  events.addEventListener('away', () =>
    tell('The database cannot be reached. What you see is not of now; it goes on by itself.'),
  );
  events.addEventListener('back', () => {
    tell(null);
    refreshSoon();
  });
  events.addEventListener('error', () => {
    document.body.dataset.lost = 'true';
    tell('No connection to Chandler. What you see is not of now; the page tries again.');
    if (events?.readyState !== EventSource.CLOSED) return;
    events = null;
    // It is answered by something else than events: by the form to sign in, or by an error.
    void fetch('/ui/events', { method: 'HEAD' }).then(
      ({ redirected }) => (redirected ? tell(SIGNED_OUT) : setTimeout(follow, RETRY_MS)),
      () => setTimeout(follow, RETRY_MS),
    );
  });
}

/** Null: all is well again. */
function tell(message: string | null): void {
  const place = document.getElementById('connection');
  if (place === null) return;
  place.textContent = message ?? '';
  place.hidden = message === null;
}

function refreshSoon(): void {
  if (isRefreshing) return;
  isRefreshing = true;
  const waitMs = Math.max(SETTLE_MS, refreshedAt + EVERY_MS - performance.now());
  setTimeout(() => {
    isRefreshing = false;
    refreshedAt = performance.now();
    void refresh();
  }, waitMs);
}

async function refresh(): Promise<void> {
  if (document.hidden || isLeaving()) return;
  document.dispatchEvent(new CustomEvent('chandler:changed'));
  const answer = await fetch(location.href, { headers: { Accept: 'text/html' } }).catch(() => null);
  if (isLeaving()) return;
  if (answer?.redirected) return tell(SIGNED_OUT);
  // An error: what is there stays, and the stream of events tells why.
  if (answer === null || !answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  for (const part of document.querySelectorAll(LIVE)) {
    const next = page.getElementById(part.id);
    if (next === null || next.innerHTML === received.get(part.id)) continue;
    received.set(part.id, next.innerHTML);
    become(part, next);
  }
}

/** Changes only what differs: a button that somebody is about to press stays where it is, with its focus. */
function become(old: Element, next: Element): void {
  for (const { name } of [...old.attributes])
    if (!next.hasAttribute(name) && !KEPT.includes(name)) old.removeAttribute(name);
  for (const { name, value } of next.attributes)
    if (old.getAttribute(name) !== value && !KEPT.includes(name)) old.setAttribute(name, value);
  const [before, after] = [[...old.childNodes], [...next.childNodes]];
  for (const [i, node] of after.entries()) {
    const known = before[i];
    if (known === undefined) old.append(node);
    else if (known instanceof Element && node instanceof Element && known.nodeName === node.nodeName)
      become(known, node);
    else if (known.nodeType === Node.TEXT_NODE && node.nodeType === Node.TEXT_NODE) {
      if (known.nodeValue !== node.nodeValue) known.nodeValue = node.nodeValue;
    } else known.replaceWith(node);
  }
  for (const surplus of before.slice(after.length)) surplus.remove();
}

export {};
