/** All screens, in the order of the menu. */
import { readCoinCandles } from '../coin/candles-source.ts';
import { coinScreen } from '../coin/coin-screen.tsx';
import { searchScreen } from '../coin/search-screen.tsx';
import { COVERAGE_PATH } from '../map/coverage-address.ts';
import { readCoverageData } from '../map/coverage-data.ts';
import { coverageScreen } from '../map/coverage-screen.tsx';
import type { DataSource, Screen } from '../screen.ts';
import { backfillScreen } from './backfill.tsx';
import { backfillsScreen } from './backfills.tsx';
import { homeScreen } from './home.tsx';
import { quotaScreen } from './quota/quota.tsx';
import { noticesScreen } from './records/notices.tsx';
import { requestsScreen } from './records/requests.tsx';
import { keysScreen } from './system/keys.tsx';
import { systemScreen } from './system/system.tsx';

export const SCREENS: readonly Screen[] = [
  { path: '/', name: 'Home', view: homeScreen },
  { path: COVERAGE_PATH, name: 'Coverage', view: coverageScreen },
  { path: '/ui/backfills', name: 'Backfills', view: backfillsScreen },
  { path: '/ui/search', view: searchScreen },
  { path: '/ui/coins/:id', view: coinScreen },
  { path: '/ui/backfills/:id', view: backfillScreen },
  { path: '/ui/quota', name: 'Quota', view: quotaScreen },
  { path: '/ui/requests', name: 'Requests', view: requestsScreen },
  { path: '/ui/notices', name: 'Notices', view: noticesScreen },
  { path: '/ui/keys', name: 'Keys', view: keysScreen },
  { path: '/ui/system', name: 'System', view: systemScreen },
];

/** The data that the scripts of these screens request. */
export const DATA_SOURCES: readonly DataSource[] = [
  { path: `${COVERAGE_PATH}/data`, read: readCoverageData },
  { path: '/ui/coins/:id/candles', read: readCoinCandles },
];
