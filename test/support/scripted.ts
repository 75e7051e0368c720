/** Stands between us and the simulator: answers some requests itself, and writes down all of them. */
import type { Clock } from '../../src/clock.ts';
import type { FetchFunction } from '../../src/upstream/wire.ts';

export type Asked = {
  /** When it arrived, on the world's clock. */
  readonly at: number;
  readonly path: string;
  readonly coin: string | null;
  readonly authorization: string | null;
  /** Null while unanswered, and when the answer never comes. */
  status: number | null;
};

export type Script = (request: Request, simulated: FetchFunction, clock: Clock) => Response | Promise<Response> | null;

/** `script` answers what it wants to; for null the simulator does. It may be exchanged while the world runs. */
export function createScripted(script: Script | null = null) {
  const log: Asked[] = [];
  const scripted = {
    script,
    log: log as readonly Asked[],
    /** Those that asked for candles or for prices. */
    ohlcv: () => log.filter((asked) => asked.coin !== null),
    /** Everything seen so far is forgotten. */
    forget: () => {
      log.length = 0;
    },
    fetch:
      (simulated: FetchFunction, clock: Clock): FetchFunction =>
      async (request) => {
        const { pathname } = new URL(request.url);
        const ofCandles = /\/coins\/([^/]+)\/ohlcv/.exec(pathname)?.[1];
        const coin = ofCandles ?? /\/tickers\/([^/]+)\/historical$/.exec(pathname)?.[1] ?? null;
        const entry: Asked = {
          at: clock.now(),
          path: pathname,
          coin,
          authorization: request.headers.get('authorization'),
          status: null,
        };
        log.push(entry);
        const response = await (scripted.script?.(request, simulated, clock) ?? simulated(request));
        entry.status = response.status;
        return response;
      },
  };
  return scripted;
}

export function says(status: number, error: string, headers: Record<string, string> = {}): Response {
  return Response.json({ error }, { status, headers });
}
