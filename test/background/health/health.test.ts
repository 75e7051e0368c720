/** What a process reports about its own health: its incidents, and its metrics. */
import { expect, test } from 'vitest';
import type { App } from '../../../src/app.ts';
import { databaseError, reportOutage } from '../../../src/background/health/availability.ts';
import { createMetrics } from '../../../src/background/health/metrics.ts';
import { createIncidents, DATABASE, LOCK } from '../../../src/background/health/service-status.ts';
import { systemClock } from '../../../src/clock.ts';
import { DATABASE_IS_UNAVAILABLE } from '../../../src/ingest/request/outage-retry.ts';
import { createLog } from '../../../src/log.ts';

test('a full pool of the queue is no outage of the database while somebody holds a lock', () => {
  const incidents = createIncidents(createLog({ level: 'silent', write: () => undefined }), systemClock);
  const full = new Error('timeout exceeded when trying to connect');
  incidents.report(LOCK, new Error('session 1 holds a lock'));
  reportOutage(incidents, DATABASE_IS_UNAVAILABLE, full);
  expect(incidents.isOpen(DATABASE)).toBe(false);
  reportOutage(incidents, DATABASE_IS_UNAVAILABLE, new Error('connection refused'));
  expect(incidents.isOpen(DATABASE)).toBe(true);
  incidents.resolve(DATABASE);
  incidents.resolve(LOCK);
  reportOutage(incidents, DATABASE_IS_UNAVAILABLE, full);
  expect(incidents.isOpen(DATABASE)).toBe(true);
});

test('a service continues automatically where a command has to be run again, and its message says so', () => {
  const lines: string[] = [];
  const incidents = createIncidents(createLog({ level: 'info', write: (line) => lines.push(line) }), systemClock);
  const url = 'postgres://me@db.example/warehouse';
  const full = Object.assign(new Error('could not extend file'), { code: '53100' });
  incidents.report(DATABASE, databaseError(full, { database: { url } as App['database'] }));
  const said =
    'the disk of Postgres at db.example:5432 is full; make room and Chandler continues automatically; nothing stored is lost';
  expect(incidents.open()).toMatchObject([{ what: DATABASE, message: said }]);
  expect(lines.join('')).toContain(`"msg":"${DATABASE}: ${said}"`);
});

test('the lag of the event loop is measured at the scrape; the metrics that need a timer are not there', async () => {
  const { text } = await createMetrics().text(async () => ({
    ...{ warehouse: null, ledger: null, queued: null, states: null },
    ...{ disks: [], incidents: [], isReady: true },
  }));
  expect(text).toMatch(/^nodejs_eventloop_lag_seconds /m);
  expect(text).not.toMatch(/nodejs_eventloop_lag_(min|max|mean|stddev|p\d+)_seconds/);
});
