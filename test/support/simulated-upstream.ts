/** A simulated upstream on a port of this machine, for whoever asks it over the network. */
import { systemClock } from '../../src/clock.ts';
import type { Handler } from '../../src/contract/interface/handler.ts';
import { type Listening, listen } from '../../src/service/http/listen.ts';
import { createSimulator, type Simulator, type SimulatorOptions } from '../../src/simulate.ts';

export type SimulatedUpstream = Listening & {
  /** What `CHANDLER_BASE_URL` is to be. */
  readonly baseUrl: string;
  readonly simulator: Simulator;
  /** Requests for candles that have arrived. */
  asked(): number;
};

/** `before` stands before the simulator: counts, or answers in its place. */
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
  const { url, close } = await listen(before(simulator.fetch), { host: '127.0.0.1', port: 0 });
  return { url, close, baseUrl: `${url}/v1`, simulator, asked: () => simulator.counters().requests.ohlcv };
}
