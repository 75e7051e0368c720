/**
 * Answers whose status, headers and text are at hand. To everybody they are a `Response`; who listens on a port may take the parts as they
 * are. A real `Response` is only made when somebody asks for more than that: making one, and reading a text back out of it,
 * takes ten times as long as everything else a short answer needs.
 */

export type PlainParts = {
  readonly status: number;
  /** Names and values by turns, each name once: a list is made and sent faster than an object. The answer's own, without `Content-Length`. */
  readonly headers: string[];
  readonly body: string | null;
  /** Of the body, when it has been counted before. */
  readonly byteLength?: number;
  /** The body in UTF-8, where that is kept: a long one is not to be written anew for everybody. */
  readonly encoded?: () => Uint8Array;
  /** The body compressed with gzip, where it is worth keeping. */
  readonly packed?: () => Promise<Uint8Array>;
};

export function plainAnswer(parts: PlainParts): Response {
  // It has everything that a Response has, by its prototype; the compiler cannot see that.
  return new PlainAnswer(parts) as unknown as Response;
}

/** Null when it is another kind of answer, or somebody has changed it or begun to read it. */
export function partsOf(answer: Response): PlainParts | null {
  return answer instanceof PlainAnswer ? answer.parts() : null;
}

/** The same answer, with one more header, which it does not have yet. */
export function withHeader(answer: Response, name: string, value: string): Response {
  const parts = partsOf(answer);
  if (parts) parts.headers.push(name, value);
  else answer.headers.set(name, value);
  return answer;
}

class PlainAnswer {
  readonly #parts: PlainParts;
  #real: Response | null = null;

  constructor(parts: PlainParts) {
    this.#parts = parts;
  }

  parts(): PlainParts | null {
    return this.#real === null ? this.#parts : null;
  }

  real(): Response {
    const { status, headers, body } = this.#parts;
    if (this.#real === null) {
      const pairs: [string, string][] = [];
      for (let i = 0; i < headers.length; i += 2) pairs.push([headers[i]!, headers[i + 1]!]);
      this.#real = new Response(body, { status, headers: pairs });
    }
    return this.#real;
  }

  get status(): number {
    return this.#parts.status;
  }

  get ok(): boolean {
    return this.status >= 200 && this.status < 300;
  }
}

// `instanceof Response` holds, and the rest of what a Response can do is done by a real one.
Object.setPrototypeOf(PlainAnswer.prototype, Response.prototype);
const OTHERS = ['headers', 'statusText', 'type', 'url', 'redirected', 'body', 'bodyUsed'] as const;
for (const name of OTHERS) {
  Object.defineProperty(PlainAnswer.prototype, name, {
    get(this: PlainAnswer) {
      return this.real()[name];
    },
  });
}
const READERS = ['text', 'json', 'arrayBuffer', 'blob', 'formData', 'clone'] as const;
for (const name of READERS) {
  Object.defineProperty(PlainAnswer.prototype, name, {
    value(this: PlainAnswer) {
      return this.real()[name]();
    },
  });
}
