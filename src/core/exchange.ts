/** The volumes of an exchange as columns, spelt as upstream spells them; in US dollars. */
export const EXCHANGE_VOLUMES = [
  'reported_volume_24h',
  'adjusted_volume_24h',
  'reported_volume_7d',
  'adjusted_volume_7d',
  'reported_volume_30d',
  'adjusted_volume_30d',
] as const;
