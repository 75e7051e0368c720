/**
 * The fiat currencies of prices: names, symbols, and ids for the price converter. Only the id `usd-us-dollars` was seen in the upstream; the
 * others follow its pattern.
 */

type Fiat = { readonly id: string; readonly name: string; readonly symbol: string };

const NAMES: Readonly<Record<string, string>> = {
  USD: 'US Dollars',
  EUR: 'Euro',
  PLN: 'Polish Zloty',
  KRW: 'South Korea Won',
  GBP: 'Pound Sterling',
  CAD: 'Canadian Dollar',
  JPY: 'Japanese Yen',
  RUB: 'Russian Ruble',
  TRY: 'Turkish New Lira',
  NZD: 'New Zealand Dollar',
  AUD: 'Australian Dollar',
  CHF: 'Swiss Franc',
  UAH: 'Ukrainian Hryvnia',
  HKD: 'Hong Kong Dollar',
  SGD: 'Singapore Dollar',
  NGN: 'Nigerian Naira',
  PHP: 'Philippine Peso',
  MXN: 'Mexican Peso',
  BRL: 'Brazil Real',
  THB: 'Thai Baht',
  CLP: 'Chilean Peso',
  CNY: 'Yuan Renminbi',
  CZK: 'Czech Koruna',
  DKK: 'Danish Krone',
  HUF: 'Hungarian Forint',
  IDR: 'Indonesian Rupiah',
  ILS: 'Israeli Shekel',
  INR: 'Indian Rupee',
  MYR: 'Malaysian Ringgit',
  NOK: 'Norwegian Krone',
  PKR: 'Pakistani Rupee',
  SEK: 'Swedish Krona',
  TWD: 'Taiwan New Dollar',
  ZAR: 'South African Rand',
  VND: 'Vietnamese Dong',
  BOB: 'Boliviano',
  COP: 'Colombian Peso',
  PEN: 'Peruvian Sol',
  ARS: 'Argentine Peso',
  ISK: 'Icelandic Krona',
};

export const FIATS: readonly Fiat[] = Object.entries(NAMES).map(([symbol, name]) => ({
  id: `${symbol} ${name}`.toLowerCase().replaceAll(' ', '-'),
  name,
  symbol,
}));

const BY_ID = new Map(FIATS.map((fiat) => [fiat.id, fiat]));

export function findFiat(id: string): Fiat | undefined {
  return BY_ID.get(id);
}
