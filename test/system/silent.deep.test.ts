import { describe, expect, test, vi } from 'vitest';
import { testRedisUrl } from '../support/database.ts';
import { HOW_SOON, setScene, stopsInTime, testStopsInTime } from './silent.ts';

describe('a database that falls silent', { concurrent: true }, () => {
  testStopsInTime('http');

  test('is reported, does not block the metrics, and is used again when it is back', async (context) => {
    const { database, relayTo, start } = await setScene(context);
    const relay = await relayTo(database.url);
    const { service, get } = await start('all', { DATABASE_URL: relay.url });
    relay.freeze();
    expect(await get('/metrics')).toMatchObject({ status: 200, text: expect.stringMatching(/^process_cpu/m) });
    await vi.waitFor(async () => expect(await get('/ready')).toMatchObject({ status: 503 }), HOW_SOON);
    expect(JSON.parse((await get('/health')).text).incidents).toContainEqual(
      expect.objectContaining({ what: 'the database', message: expect.stringMatching(/does not answer/) }),
    );
    const { status, text, ms } = await get('/metrics');
    expect(status).toBe(200);
    expect(text).toMatch(/^chandler_ready 0$/m);
    expect(ms).toBeLessThan(6_500);
    relay.mend();
    await service.said(/^the database recovered/);
    await vi.waitFor(async () => expect(await get('/ready')).toMatchObject({ status: 200 }), HOW_SOON);
  });

  test('is reported by serve, which ends in time', async (context) => {
    const { database, relayTo, start } = await setScene(context);
    const relay = await relayTo(database.url);
    const { service, get } = await start('', { DATABASE_URL: relay.url }, 'serve');
    relay.freeze();
    await vi.waitFor(async () => expect(await get('/ready')).toMatchObject({ status: 503 }), HOW_SOON);
    expect(await get('/v1/global')).toMatchObject({ status: 503 });
    relay.mend();
    await vi.waitFor(async () => expect(await get('/ready')).toMatchObject({ status: 200 }), HOW_SOON);
    relay.freeze();
    await stopsInTime(service);
  });
});

describe.skipIf(testRedisUrl() === null)('a Redis that falls silent', { concurrent: true }, () => {
  test('is reported, is used again when it is back, and does not keep the service from ending', async (context) => {
    const { database, relayTo, start } = await setScene(context);
    const relay = await relayTo(testRedisUrl()!);
    const { service, get } = await start('all', { DATABASE_URL: database.url, REDIS_URL: relay.url });
    relay.freeze();
    await vi.waitFor(async () => expect(await get('/ready')).toMatchObject({ status: 503 }), HOW_SOON);
    expect(JSON.parse((await get('/health')).text).incidents).toContainEqual(
      expect.objectContaining({ what: 'the queue' }),
    );
    relay.mend();
    await service.said(/^the queue recovered/);
    await vi.waitFor(async () => expect(await get('/ready')).toMatchObject({ status: 200 }), HOW_SOON);
    relay.freeze();
    await stopsInTime(service);
  });
});
