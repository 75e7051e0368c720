import { testEchoes } from './key-echoed.ts';

testEchoes(
  'answers something else',
  'leads in circles',
  'refuses the question',
  'answers broken JSON',
  'says to be a market of that name',
);
