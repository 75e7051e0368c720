import { testPriceWidths } from './price-widths.ts';

testPriceWidths('others');
