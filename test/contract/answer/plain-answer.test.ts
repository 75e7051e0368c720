import { describe, expect, it } from 'vitest';
import { partsOf, plainAnswer, withHeader } from '../../../src/contract/answer/plain-answer.ts';

const make = () =>
  plainAnswer({ status: 404, headers: ['Content-Type', 'application/json', 'X-A', 'b'], body: '{"é":1}' });

describe('an answer whose parts are at hand', () => {
  it('is a Response to everybody who asks', async () => {
    const answer = make();
    expect(answer).toBeInstanceOf(Response);
    expect([answer.status, answer.ok, answer.bodyUsed]).toEqual([404, false, false]);
    expect([answer.headers.get('content-type'), answer.headers.get('x-a')]).toEqual(['application/json', 'b']);
    expect(await answer.clone().json()).toEqual({ é: 1 });
    expect(await answer.text()).toBe('{"é":1}');
    expect(answer.bodyUsed).toBe(true);
    await expect(answer.text()).rejects.toThrow();
    expect((await make().arrayBuffer()).byteLength).toBe(8);
    expect(new Response(null, make()).status).toBe(404);
    expect(plainAnswer({ status: 204, headers: [], body: null }).ok).toBe(true);
  });

  it('gives its parts as long as nobody has looked behind them', () => {
    const answer = make();
    expect(partsOf(answer)).toMatchObject({ status: 404, body: '{"é":1}' });
    answer.headers.set('X-A', 'c');
    expect(partsOf(answer)).toBeNull();
    expect(partsOf(new Response('x'))).toBeNull();
  });

  it('takes one more header, as any Response does', () => {
    for (const answer of [make(), new Response('x')]) {
      expect(withHeader(answer, 'X-More', 'yes')).toBe(answer);
      expect(answer.headers.get('x-more')).toBe('yes');
    }
    const read = make();
    expect(read.headers.get('x-more')).toBeNull();
    expect(withHeader(read, 'X-More', 'yes').headers.get('x-more')).toBe('yes');
  });
});
