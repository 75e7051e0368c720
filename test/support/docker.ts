/** Checks once, quickly and silently, whether a Docker engine answers. */
import { existsSync } from 'node:fs';
import net from 'node:net';

/** The default socket of the engine; `DOCKER_HOST` overrides it. */
const DEFAULT_SOCKET = '/var/run/docker.sock';
const PATIENCE_MS = 1_000;

export async function dockerAnswers(): Promise<boolean> {
  const host = process.env.DOCKER_HOST;
  const target = host ? targetOf(host) : { path: DEFAULT_SOCKET };
  if (!target || ('path' in target && !existsSync(target.path))) return false;
  return new Promise((resolve) => {
    const socket = net.connect(target);
    const answer = (alive: boolean) => {
      socket.destroy();
      resolve(alive);
    };
    socket.setTimeout(PATIENCE_MS, () => answer(false));
    socket.once('error', () => answer(false));
    socket.once('connect', () => socket.write('GET /_ping HTTP/1.0\r\n\r\n'));
    socket.once('data', (data) => answer(data.toString().startsWith('HTTP/')));
  });
}

function targetOf(host: string): { path: string } | { host: string; port: number } | null {
  if (host.startsWith('unix://')) return { path: host.slice('unix://'.length) };
  if (!URL.canParse(host)) return null;
  const { hostname, port } = new URL(host);
  return { host: hostname, port: Number(port) || 2375 };
}
