import { describe, test } from 'vitest';
import { setScene, stopsInTime, testStopsInTime } from './silent.ts';

describe('a database that falls silent', { concurrent: true }, () => {
  testStopsInTime('all');

  test('before the first connection does not keep the service from ending either', async (context) => {
    const { database, launch, relayTo } = await setScene(context);
    const relay = await relayTo(database.url);
    relay.freeze();
    const service = await launch('all', { DATABASE_URL: relay.url });
    await service.said(/^serving/);
    await stopsInTime(service);
  });
});
