/** Stands between Chandler and the simulator, answers some requests itself, and records all of them. */
import type { Clock } from '../../src/clock.ts';
import type { FetchFunction } from '../../src/upstream/wire.ts';

export type Asked = {
  /** When it arrived, on the world's clock. */
  readonly at: number;
  readonly path: string;
  readonly coin: string | null;
  readonly authorization: string | null;
  /** Null while unanswered, and if the answer never arrives. */
  status: number | null;
};

export type Script = (request: Request, simulated: FetchFunction, clock: Clock) => Response | Promise<Response> | null;

/** `script` returns an answer, or null to let the simulator answer. It may be replaced while the world runs. */
export function createScripted(script: Script | null = null) {
  const log: Asked[] = [];
  const scripted = {
    script,
    log: log as readonly Asked[],
    /** The requests for candles or prices. */
    ohlcv: () => log.filter((asked) => asked.coin !== null),
    /** Forgets all requests so far. */
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
