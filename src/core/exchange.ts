/** The columns for the volumes of an exchange, in US dollars, with the upstream's names. */
export const EXCHANGE_VOLUMES = [
  'reported_volume_24h',
  'adjusted_volume_24h',
  'reported_volume_7d',
  'adjusted_volume_7d',
  'reported_volume_30d',
  'adjusted_volume_30d',
] as const;
