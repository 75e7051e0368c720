/** The addresses that the HTTP server listens on: one for callers and, if the operator wants, a second one for operators. */
import type { ParsedSetting } from './setting.ts';

export type ListenAddress = { readonly host: string; readonly port: number };

export const DEFAULT_LISTEN: ListenAddress = { host: '127.0.0.1', port: 8080 };

export function parseListen(text: string): ParsedSetting<ListenAddress> {
  const parts = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+)):(\d{1,5})$/i.exec(text);
  const port = Number(parts?.[3]);
  if (parts && port <= 65_535) return { ok: { host: (parts[1] ?? parts[2])!, port } };
  return {
    problem: 'which is not a host and port; write it like 127.0.0.1:8080, or 0.0.0.0:8080 for all interfaces',
  };
}

/** `callers` is the text of the address for callers. The two addresses must differ. */
export function parseOperationsListen(text: string, callers: string | undefined): ParsedSetting<ListenAddress> {
  const read = parseListen(text);
  if (!('ok' in read)) return read;
  const given = parseListen(callers?.trim() ?? '');
  const { host, port } = 'ok' in given ? given.ok : DEFAULT_LISTEN;
  const isTaken = read.ok.port !== 0 && read.ok.port === port && read.ok.host === host;
  return isTaken
    ? { problem: 'which is the address for callers, CHANDLER_LISTEN, too; choose another port, or remove this setting' }
    : read;
}
