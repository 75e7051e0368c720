import { describe, test } from 'vitest';
import { setScene, stopsInTime } from './silent.ts';

describe('a database that falls silent', { timeout: 120_000, concurrent: true }, () => {
  test.for(['all', 'http'])(
    'does not keep %s from ending within ten seconds, however soon it is told to',
    async (role, context) => {
      const { database, relayTo, start } = await setScene(context);
      const relay = await relayTo(database.url);
      const { service } = await start(role, { DATABASE_URL: relay.url });
      relay.freeze();
      await stopsInTime(service);
    },
  );

  test('before it was open does not keep the service from ending either', async (context) => {
    const { database, launch, relayTo } = await setScene(context);
    const relay = await relayTo(database.url);
    relay.freeze();
    const service = await launch('all', { DATABASE_URL: relay.url });
    await service.said(/^serving/);
    await stopsInTime(service);
  });
});
