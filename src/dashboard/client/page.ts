/**
 * What every page does in the browser: it follows the changes that the server reports, requests itself again, and replaces the parts that
 * differ. A hidden page does nothing.
 */

/** A page replaces its parts with this attribute and an id when they change. */
const LIVE = '[data-live][id]';
/** Changes within this time cause one refresh. */
const SETTLE_MS = 400;
/** During constant changes, a page refreshes itself at most this often. */
const EVERY_MS = 5_000;
const RETRY_MS = 5_000;
/** Attributes that the visitor sets by opening or choosing something. */
const KEPT = ['open', 'value'];
const SIGNED_OUT = 'You are signed out. Reload the page to sign in.';
/** Marks a page that could not be shown. */
const UNSHOWN = '[data-unshown]';

let events: EventSource | null = null;
let isRefreshing = false;
/**
 * Set when a form was sent, because its answer will replace this page. Until this instant the page does not refresh itself: its own address
 * may no longer exist. After this instant it no longer expects the answer.
 */
let leavingUntil = Number.NEGATIVE_INFINITY;
const LEAVING_MS = 30_000;
const isLeaving = () => performance.now() < leavingUntil;
let refreshedAt = Number.NEGATIVE_INFINITY;
/** The HTML of each part as the page last received it, because the browser may have changed the part since. */
const received = new Map<string, string>();

for (const part of document.querySelectorAll(LIVE)) received.set(part.id, part.innerHTML);
document.addEventListener('visibilitychange', follow);
document.addEventListener('submit', ({ defaultPrevented }) => {
  if (!defaultPrevented) leavingUntil = performance.now() + LEAVING_MS;
});
// The browser shows the page again, for example after Back.
addEventListener('pageshow', () => {
  leavingUntil = Number.NEGATIVE_INFINITY;
});
// Before the scripts of the screen handle the event, because canvases on paper have the light colours, too.
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
    showMessage(null);
    // Shows the changes that came while the page was hidden or disconnected.
    if (wasFollowing || document.body.dataset.lost === 'true') refreshSoon();
    document.body.dataset.followed = 'true';
    document.body.dataset.lost = 'false';
  });
  events.addEventListener('changed', refreshSoon);
  events.addEventListener('away', () =>
    showMessage('The database cannot be reached. This page shows older data, and refreshes automatically.'),
  );
  events.addEventListener('back', () => {
    showMessage(null);
    refreshSoon();
  });
  events.addEventListener('error', () => {
    document.body.dataset.lost = 'true';
    showMessage('No connection to Chandler. This page shows older data, and reconnects automatically.');
    if (events?.readyState !== EventSource.CLOSED) return;
    events = null;
    // The server answers with something else than events: with the form to sign in, or with an error.
    void fetch('/ui/events', { method: 'HEAD' }).then(
      ({ redirected }) => (redirected ? showMessage(SIGNED_OUT) : setTimeout(follow, RETRY_MS)),
      () => setTimeout(follow, RETRY_MS),
    );
  });
}

/** Null when the problem is over. */
function showMessage(message: string | null): void {
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
  if (answer?.redirected) return showMessage(SIGNED_OUT);
  // On an error the page stays as it is. The stream of events tells the reason.
  if (answer === null || !answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  for (const part of document.querySelectorAll(LIVE)) {
    const next = page.getElementById(part.id);
    if (next === null || next.innerHTML === received.get(part.id)) continue;
    received.set(part.id, next.innerHTML);
    become(part, next);
  }
}

/** Changes only what differs, so that a button which the visitor is about to press keeps its place and its focus. */
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
