import { testCalmDays } from './calm-days.ts';

// Not the plan enterprise: it has no limits, so there is no reservation. And its rates, fourteen requests at a time, are sent again when
// the machine is slower than the rate.
testCalmDays('without a key', 5);
testCalmDays('free', 5);
testCalmDays('pro', 5);
