import { testCalmDays } from './calm-days.ts';

// Not the plan enterprise: nothing of it is limited, so there is nothing to leave. And the rates, fourteen requests at a time, are sent again where the
// machine is slower than the pace.
testCalmDays('without a key', 5);
testCalmDays('free', 5);
testCalmDays('pro', 5);
