import { describe, expect, test } from 'vitest';
import {
  NOTICE_EVENTS,
  parseNoticeEvents,
  parseRevisionsADay,
  parseSecretUrl,
  parseStuckAfter,
} from '../../../src/core/settings/notice-settings.ts';

describe('the settings of notices', () => {
  test('accept each valid value', () => {
    expect(parseSecretUrl('https://hooks.example.com/a/b?c=d')).toEqual({ ok: 'https://hooks.example.com/a/b?c=d' });
    expect(parseNoticeEvents('all')).toEqual({ ok: NOTICE_EVENTS });
    expect(parseNoticeEvents('history-limit, quota')).toEqual({ ok: ['quota', 'history-limit'] });
    expect(parseStuckAfter('90m')).toEqual({ ok: 5_400_000 });
    expect(parseStuckAfter('30d')).toEqual({ ok: 30 * 86_400_000 });
    expect(parseRevisionsADay('0')).toEqual({ ok: 0 });
  });

  test.each([
    ['hooks.example.com/a', /not a web address/],
    ['ftp://hooks.example.com/a', /not a web address/],
    ['https://me:secret@hooks.example.com/a', /user name or password; leave them out/],
    ['https://hooks.example.com/a#b', /no #/],
  ])('refuse an invalid address: %s', (text, problem) => {
    expect(parseSecretUrl(text)).toEqual({ problem: expect.stringMatching(problem) });
    expect(JSON.stringify(parseSecretUrl(text))).not.toContain('hooks.example.com');
  });

  test.each([
    ['quotas', /^it must be all, or some of key-refused, .*\(did you mean quota\?\)$/],
    ['quota,stick', /^which has "stick"; it must be all, .*\(did you mean stuck\?\)$/],
    ['all,quota', /^which has "all"; /],
    [',', /^it must be all/],
  ])('refuse invalid events: %s', (text, problem) => {
    expect(parseNoticeEvents(text)).toEqual({ problem: expect.stringMatching(problem) });
  });

  test.each(['60', '1m', '31d', '1.5h', '-5m', 'soon', '1h30m'])('refuse an invalid duration: %s', (text) => {
    expect(parseStuckAfter(text)).toEqual({ problem: expect.stringMatching(/like 30m, 2h or 1d, from 5m to 30d$/) });
  });

  test.each(['-1', '1e3', '1000001', '0.5', 'many'])('refuse an invalid number of revisions: %s', (text) => {
    expect(parseRevisionsADay(text)).toEqual({ problem: expect.stringMatching(/whole number .* from 0 to 1000000$/) });
  });
});
