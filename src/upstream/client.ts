/** The client of the upstream's REST interface: exactly one HTTP request per question, and every outcome is a value. */
import { readAddress, urlOf } from './address.ts';
import type { Answer, Outcome, Question, Upstream } from './answer.ts';
import { classify, type Received } from './classify.ts';
import { createSender, type SenderOptions } from './sender.ts';

export type UpstreamOptions = SenderOptions & {
  /** `http(s)://host[:port]/v1`: no credentials, query or fragment. The key is sent to this origin and to no other. */
  readonly baseUrl: string;
};

/** @throws TypeError when the base URL or the key is not usable (the message never repeats the key). */
export function createUpstream(options: UpstreamOptions): Upstream {
  const base = readAddress(options.baseUrl);
  const sender = createSender(options);
  return {
    send: async (question: Question): Promise<Answer> => {
      const { scheme, signal, withText = false } = question;
      const found = (received: Received) => (withText ? attachText(classify(received), received) : classify(received));
      return sender.send({ url: urlOf(base, question), scheme, signal }, found);
    },
    close: sender.close,
  };
}

function attachText(outcome: Outcome, { body }: Received): Outcome {
  if (outcome.kind !== 'answered' || body.kind !== 'whole') return outcome;
  return { ...outcome, text: body.bytes.toString('utf8').replace(/^\uFEFF/, '') };
}
