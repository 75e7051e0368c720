/** The requests that `/docs` shows for copying. */

export type Copied = { readonly address: string; readonly headers: Headers; readonly body: string | undefined };

/** The requests that a reader of the page can copy, parsed as a shell parses them. */
export function copied(text: string): Copied[] {
  const plain = (html: string) =>
    html
      .replaceAll('&#39;', "'")
      .replaceAll('&quot;', '"')
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&amp;', '&');
  return [...text.matchAll(/<pre>(curl [^\n]*)<\/pre>/g)].map(([, command]) => {
    const words = [...plain(command!).matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare!);
    const headers = words.flatMap((word, i) => (words[i - 1] === '-H' ? [word.split(': ') as [string, string]] : []));
    const bodyAt = words.indexOf('-d');
    const address = words.find((word) => word.startsWith('http'))!;
    return { address, headers: new Headers(headers), body: bodyAt < 0 ? undefined : words[bodyAt + 1]! };
  });
}

export async function send(
  { address, headers, body }: Copied,
  to: (request: Request) => Promise<Response>,
): Promise<Response> {
  if (body === undefined) return to(new Request(address, { headers }));
  return to(new Request(address, { method: 'POST', headers, body }));
}
