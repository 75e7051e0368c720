/** More than a thousand hostile requests over a real socket, to any source: the service must survive all of them. */
import net from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Clock } from '../../src/clock.ts';
import type { Missing } from '../../src/contract/answer/not-found.ts';
import { ENDPOINT_NAMES, ENDPOINTS, type Endpoint } from '../../src/contract/interface/endpoints.ts';
import type { MarketData } from '../../src/contract/record/market-data.ts';
import { type Listening, listen } from '../../src/service/http/listen.ts';
import { createService } from '../../src/service/service.ts';
import { openAccess } from './conformance.ts';

export type Victim = {
  readonly data: MarketData<Missing>;
  readonly clock: Clock;
  /** A coin that has a ticker. */
  readonly coinId: string;
  readonly close?: () => Promise<void>;
};

const HEADERS_MS = 500;
const REQUEST_MS = 1_000;
/** No client waits longer than this for an answer; far above every timeout of the server. */
const HANG_MS = 20_000;

export function describeHostile(title: string, prepare: () => Promise<Victim>): void {
  describe(`hostile requests to ${title}`, () => {
    let victim: Victim;
    let server: Listening;
    let port: number;
    const errors: unknown[] = [];
    beforeAll(async () => {
      victim = await prepare();
      const onError = (error: unknown) => {
        errors.push(error);
      };
      const service = createService({ data: victim.data, access: openAccess, clock: victim.clock, onError });
      server = await listen(service, {
        host: '127.0.0.1',
        port: 0,
        onError,
        limits: {
          headersMs: HEADERS_MS,
          requestMs: REQUEST_MS,
          idleMs: 2 * REQUEST_MS,
          keepAliveMs: REQUEST_MS,
          maxHeaderBytes: 16_384,
          maxConnections: 1_000,
        },
      });
      port = Number(new URL(server.url).port);
    });
    afterAll(async () => {
      await server?.close();
      await victim?.close?.();
    });

    const get = (path: string, headers = '') =>
      converse(port, [`GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}Connection: close\r\n\r\n`]);
    /** Sends all of them, a few at a time, and returns those whose status is not among `expected`. */
    const surprises = async (paths: readonly string[], expected: readonly (number | null)[]) => {
      const out: string[] = [];
      const rest = paths.values();
      await Promise.all(
        Array.from({ length: 8 }, async () => {
          for (const path of rest) {
            const status = await get(path);
            if (!expected.includes(status)) out.push(`${status} ${path.slice(0, 200)}`);
          }
        }),
      );
      return out;
    };
    /** Checks that the server runs, answers other callers as before, and has reported no error. */
    const isWell = async () => {
      expect(await get(`/v1/tickers/${victim.coinId}`)).toBe(200);
      expect(errors).toEqual([]);
    };

    it('answers every wrong parameter with 400 and names what is wrong', async () => {
      const paths = wrongParameters(victim.coinId);
      expect(paths.length).toBeGreaterThan(500);
      expect(await surprises(paths, [400])).toEqual([]);
      await isWell();
    });

    it('answers every made-up id with 404, or without candles', async () => {
      const paths = strangeIds();
      expect(paths.length).toBeGreaterThan(400);
      expect(
        await surprises(
          paths.filter((path) => !path.includes('/ohlcv')),
          [404, 400, 431],
        ),
      ).toEqual([]);
      expect(
        await surprises(
          paths.filter((path) => path.includes('/ohlcv')),
          [200, 404, 400, 431],
        ),
      ).toEqual([]);
      await isWell();
    });

    it('can search for any text', async () => {
      const paths = STRANGE.map((text) => `/v1/search?q=${text}`);
      expect(await surprises(paths, [200, 400, 431])).toEqual([]);
      await isWell();
    });

    it('accepts its own routes only, and the methods GET, HEAD, POST and OPTIONS only', async () => {
      const paths = ['/', '//', '/v1', '/v1/', '/V1/tickers', '/v1/tickers/a/b/c', '/v2/tickers', '/admin'];
      const climbs = [
        '/v1/../../etc/passwd',
        '/v1/%2e%2e/%2e%2e/etc/passwd',
        '/..%2f..%2fetc%2fpasswd',
        '/v1/tickers/../../x',
      ];
      expect(
        await surprises([...paths, ...climbs, '/.git/config', '/v1/tickers%00', '/*', '/v1/*'], [404, 400]),
      ).toEqual([]);
      for (const method of ['DELETE', 'PUT', 'PATCH', 'TRACE', 'PROPFIND', 'JUNK', 'get']) {
        const status = await converse(port, [`${method} /v1/tickers HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`]);
        expect([method, status !== null && status >= 400 && status < 500]).toEqual([method, true]);
      }
      await isWell();
    });

    it('refuses what is not HTTP', async () => {
      for (const [what, bytes] of Object.entries(NO_HTTP)) {
        const status = await converse(port, [bytes]);
        // A connection that is closed without an answer is accepted as well.
        expect([what, status === null || (status >= 400 && status < 500)]).toEqual([what, true]);
      }
      await isWell();
    });

    it('survives bodies that are deep, wrong or large', async () => {
      const deep = '['.repeat(100_000) + ']'.repeat(100_000);
      const bodies: [string, string][] = [
        ['application/json', deep],
        ['application/json', '{"q":'],
        ['application/x-www-form-urlencoded', 'limit=-1&__proto__=x'],
        ['multipart/form-data; boundary=x', '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n'],
        ['text/html; charset=nonsense', '<script>'],
        ['\u00ff\u00fe', '\u0000\u0001'],
        ['', 'x'.repeat(500_000)],
      ];
      for (const [type, body] of bodies) {
        const head = `POST /v1/global HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nConnection: close\r\n`;
        const status = await converse(port, [
          `${head}Content-Length: ${Buffer.byteLength(body, 'latin1')}\r\n\r\n`,
          body,
        ]);
        expect([type, body.slice(0, 20), status === 200 || (status !== null && status >= 400 && status < 500)]).toEqual(
          [type, body.slice(0, 20), true],
        );
      }
      await isWell();
    });

    it('disconnects clients that do not finish: half a line, half a head, half a body', async () => {
      const head = 'POST /v1/global HTTP/1.1\r\nHost: x\r\n';
      const halves = [
        'GET /v1/gl',
        'GET /v1/global HTTP/1.1\r\nHost:',
        `${head}Content-Length: 100\r\n\r\n{"a`,
        `${head}Transfer-Encoding: chunked\r\n\r\nff\r\nab`,
      ];
      const ends = await Promise.all(halves.map((half) => converse(port, [half])));
      for (const status of ends) expect([null, 200, 400, 408]).toContain(status);
      await isWell();
    });
  });
}

/**
 * Sends the pieces and waits until the server closes the connection. Resolves to the status of its answer, null if there was none. Rejects
 * when the connection stays open.
 */
function converse(port: number, pieces: readonly string[]): Promise<number | null> {
  return new Promise((resolve, reject) => {
    let heard = '';
    const socket = net.connect(port, '127.0.0.1', () => {
      for (const piece of pieces) socket.write(Buffer.from(piece, 'latin1'));
    });
    const hung = setTimeout(() => {
      socket.destroy();
      reject(new Error(`no answer to ${JSON.stringify(pieces[0]!.slice(0, 100))}`));
    }, HANG_MS);
    socket.on('data', (data) => {
      if (heard.length < 100) heard += data.toString('latin1');
    });
    // Bytes that arrive after the server has answered reset the connection: the answer counts.
    socket.on('error', () => socket.destroy());
    socket.on('close', () => {
      clearTimeout(hung);
      const status = /^HTTP\/1\.1 (\d{3})/.exec(heard)?.[1];
      resolve(status === undefined ? null : Number(status));
    });
  });
}

const SQL = [
  "'--",
  "'%20OR%20'1'='1",
  '%27;DROP%20TABLE%20market.coin;--',
  "1'%20UNION%20SELECT%20null--",
  '$1',
  '%22%29%3b--',
  'pg_sleep(9)',
];
/** As they stand in the target of a request, so without spaces. */
const STRANGE = [
  ...SQL,
  ...[
    '%00',
    'a%00b',
    '%0d%0aX-Evil:%201',
    '%ff%fe',
    '%c0%ae',
    '%E2%80%AE',
    '%F0%9F%92%A9',
    '%',
    '%%',
    '%zz',
    '%2',
    '%ED%A0%80',
  ],
  ...['../..', '%2e%2e%2f', '....//', '\\..\\', 'C:%5C', '%252e%252e'],
  ...[
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'null',
    'undefined',
    'NaN',
    '[object%20Object]',
    '0',
    '-1',
    '1e999',
  ],
  ...[
    '{}',
    '[]',
    '{"$ne":null}',
    '<script>',
    '%3Cscript%3E',
    '$(id)',
    '{{7*7}}',
    '|id',
    ';id',
    '`id`',
    '*',
    '?'.replace('?', '%3f'),
  ],
  ...[
    'a'.repeat(201),
    'a'.repeat(10_000),
    '%41'.repeat(500),
    '\u00e9\u00ff',
    '%CC%81'.repeat(60),
    'A-A',
    'BTC-BITCOIN',
    '%20btc-bitcoin',
  ],
];
const NUMBERS = [
  '0',
  '-1',
  '-9223372036854775808',
  '9223372036854775808',
  '1e3',
  '1.5',
  'NaN',
  'Infinity',
  '-Infinity',
  '0x10',
  '%2b5',
  '1,000',
  '%31%00',
  '99999999999999999999',
  '٣',
  'limit',
  '%20',
  ...SQL,
];
const DATES = [
  'NaN',
  'yesterday',
  '2024-13-01',
  '2024-02-30',
  '2024-01-01T25:00:00Z',
  '2024-01-01T00:00:00%2b99:00',
  '-1',
  '1e9',
  '999999999999',
  '0000-00-00',
  '2024/01/01',
  '2024-1-1',
  'Infinity',
  '%00',
  ...SQL,
];
const WORDS = ['USD;', 'usd%00', '__proto__', 'constructor', '%', 'XAU', ...SQL];

/** Each endpoint that checks a parameter, with values that it must reject, alone and beside good ones. */
function wrongParameters(coinId: string): string[] {
  const wrong: Record<string, readonly string[]> = {
    limit: NUMBERS,
    page: NUMBERS,
    start: DATES,
    end: DATES,
    interval: WORDS,
    quote: WORDS,
    quotes: WORDS,
    amount: NUMBERS.filter(
      (text) => !['0', '1e3', '1.5', '%2b5', '9223372036854775808', '99999999999999999999', '%20'].includes(text),
    ),
    c: WORDS,
    modifier: WORDS,
    additional_fields: WORDS,
    q: ['', '%20', '%00', 'a%0ab', 'x'.repeat(201)],
    base_currency_id: [''],
    quote_currency_id: [''],
  };
  const good: Record<string, string> = {
    start: '2024-05-01',
    q: 'btc',
    base_currency_id: coinId,
    quote_currency_id: coinId,
  };
  const out: string[] = [];
  for (const name of ENDPOINT_NAMES) {
    const { path, parameters, answer }: Endpoint = ENDPOINTS[name];
    if (answer === null) continue;
    const asked = parameters.filter((one) => one.in === 'query');
    const filled = path.replace('{coin_id}', coinId).replaceAll(/\{\w+\}/g, 'nobody-nowhere');
    for (const parameter of asked) {
      for (const value of wrong[parameter.name] ?? []) {
        // A value of blanks counts as no value, for an interval as for a limit.
        if (value === '%20' && parameter.name !== 'q') continue;
        const query = asked
          .filter(({ name: other, required }) => required || other === parameter.name)
          .map(({ name: other }) => `${other}=${other === parameter.name ? value : good[other]}`);
        out.push(`/v1${filled}?${query.join('&')}`);
      }
    }
  }
  return out;
}

/** Each endpoint with an id in its path, with ids that nothing has. */
function strangeIds(): string[] {
  const named = ENDPOINT_NAMES.map((name) => ENDPOINTS[name].path).filter((path) => path.includes('{'));
  return named.flatMap((path) =>
    STRANGE.map(
      (text) => `/v1${path.replace(/\{\w+\}/, text).replaceAll(/\{\w+\}/g, text)}?start=2024-05-01&interval=24h`,
    ),
  );
}

const NO_HTTP: Readonly<Record<string, string>> = {
  nothing: '\r\n\r\n\r\n',
  garbage: '\u0000\u0001\u0002\u0003 garbage \u00ff\r\n\r\n',
  'a TLS hello': '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003',
  'an HTTP/2 preface': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'no version': 'GET /v1/global\r\n\r\n',
  'another version': 'GET /v1/global HTTP/9.9\r\nHost: x\r\n\r\n',
  'no host': 'GET /v1/global HTTP/1.1\r\n\r\n',
  'a host that is none': 'GET /v1/global HTTP/1.1\r\nHost: a b/c@d:e\r\nConnection: close\r\n\r\n',
  'a blank in the target': 'GET /v1/tickers/a b HTTP/1.1\r\nHost: x\r\n\r\n',
  'a header without a name': 'GET /v1/global HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n',
  'a header with a NUL': 'GET /v1/global HTTP/1.1\r\nHost: x\r\nX: a\u0000b\r\n\r\n',
  'a folded header': 'GET /v1/global HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\nY : c\r\n\r\n',
  'headers without end': `GET /v1/global HTTP/1.1\r\nHost: x\r\n${'X: y\r\n'.repeat(20_000)}\r\n`,
  'one long header': `GET /v1/global HTTP/1.1\r\nHost: x\r\nAuthorization: ${'k'.repeat(50_000)}\r\n\r\n`,
  'a length that is none': 'POST /v1/global HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\nabcde',
  'two lengths': 'POST /v1/global HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde',
  'a length and chunks':
    'POST /v1/global HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'an encoding that is none': 'POST /v1/global HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gibberish\r\n\r\nabc',
};
