import { testEchoes } from './key-echoed.ts';

testEchoes('leads in circles', 'refuses the question', 'answers broken JSON', 'says to be a market of that name');
