/** A simulated upstream on a port of this machine, for programs that need the network. */
import { systemClock } from '../../src/clock.ts';
import type { Handler } from '../../src/contract/interface/handler.ts';
import { type Listening, listen } from '../../src/service/http/listen.ts';
import { createSimulator, type Simulator, type SimulatorOptions } from '../../src/simulate.ts';

export type SimulatedUpstream = Listening & {
  /** The value for `CHANDLER_BASE_URL`. */
  readonly baseUrl: string;
  readonly simulator: Simulator;
  /** Requests for candles that have arrived. */
  asked(): number;
  /** Answers this many requests for candles; later ones wait until more are allowed. So a run stops there, however late the test acts. */
  answerOnly(requests: number): void;
};

/** `before` stands before the simulator: it counts, or answers instead. */
export async function startUpstream(
  options: Pick<SimulatorOptions, 'seed' | 'coins' | 'latencyMs' | 'limits'>,
  before: (simulated: Handler) => Handler = (simulated) => simulated,
): Promise<SimulatedUpstream> {
  const simulator = createSimulator({
    market: 'made-up',
    unlimited: true,
    clock: systemClock,
    onError: () => undefined,
    ...options,
  });
  let most = Number.POSITIVE_INFINITY;
  let begun = 0;
  let waiting: (() => void)[] = [];
  const inTurn: Handler = async (request, peer) => {
    if (request.url.includes('/ohlcv')) {
      while (begun >= most) await new Promise<void>((resolve) => waiting.push(resolve));
      begun++;
    }
    return simulator.fetch(request, peer);
  };
  const answerOnly = (requests: number) => {
    most = requests;
    const woken = waiting;
    waiting = [];
    for (const go of woken) go();
  };
  const { url, close } = await listen(before(inTurn), { host: '127.0.0.1', port: 0 });
  return {
    url,
    close,
    baseUrl: `${url}/v1`,
    simulator,
    asked: () => simulator.counters().requests.ohlcv,
    answerOnly,
  };
}
