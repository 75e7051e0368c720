-- The catalogue: coins, tags, people, platforms, contracts, exchanges and markets.
-- market.document keeps every answer as it came; the other tables hold in plain columns what analysts ask for.
-- Nothing is deleted: what upstream no longer lists is marked as gone, or its stretch of validity ends.

create table market.document (
  kind text not null,
  id text not null,
  as_of timestamptz not null,
  changed_at timestamptz not null,
  gone_at timestamptz,
  is_truncated boolean not null default false,
  fingerprint bytea not null,
  received json not null,
  constraint document_kind_id_pk primary key (kind, id)
);
comment on table market.document is 'The newest answer of upstream about each thing of the catalogue, as received. Never deleted.';
comment on column market.document.kind is 'What it is about: coin, coin_events, coin_exchanges, coin_markets, exchange_markets, tag, person, platforms, contracts.';
comment on column market.document.id is 'Id of the coin, exchange, tag, person or platform; empty for what there is only one of.';
comment on column market.document.as_of is 'Instant of the newest answer: no fact in it is newer.';
comment on column market.document.changed_at is 'Instant of the answer that last changed more than counters and ranks.';
comment on column market.document.gone_at is 'Since when upstream no longer knows the id; null while it does.';
comment on column market.document.is_truncated is 'The list may go on after its last row: the request had a limit, and the answer has as many rows.';
comment on column market.document.fingerprint is 'SHA-256 of the answer without what changes all the time.';
comment on column market.document.received is 'The answer as received: keys, their order and the text of numbers are the upstream''s.';

create table market.document_revision (
  kind text not null,
  id text not null,
  valid_from timestamptz not null,
  valid_to timestamptz not null,
  received json not null,
  constraint document_revision_kind_id_valid_from_pk primary key (kind, id, valid_from)
);
comment on table market.document_revision is 'Old versions of market.document, except of markets and contracts: one for each change of more than counters and ranks.';
comment on column market.document_revision.kind is 'As in market.document.';
comment on column market.document_revision.id is 'As in market.document.';
comment on column market.document_revision.valid_from is 'Instant of the first answer that said so.';
comment on column market.document_revision.valid_to is 'Instant of the answer that changed it.';
comment on column market.document_revision.received is 'The last answer that said so, as received.';

create table market.coin_detail (
  coin_id text primary key,
  as_of timestamptz not null,
  name text not null,
  symbol text not null,
  type text,
  is_active boolean,
  parent_id text,
  description text,
  message text,
  open_source boolean,
  hardware_wallet boolean,
  started_at timestamptz,
  development_status text,
  proof_type text,
  org_structure text,
  hash_algorithm text,
  platform_id text,
  contract text,
  logo_url text,
  whitepaper_url text,
  first_data_at timestamptz,
  last_data_at timestamptz
);
comment on table market.coin_detail is 'What upstream says about a coin besides its price, as last received. Older versions are in market.document_revision (kind coin).';
comment on column market.coin_detail.coin_id is 'market.coin.id: btc-bitcoin.';
comment on column market.coin_detail.as_of is 'Instant of the answer the values are of.';
comment on column market.coin_detail.name is 'Name.';
comment on column market.coin_detail.symbol is 'Symbol; not unique.';
comment on column market.coin_detail.type is 'coin or token.';
comment on column market.coin_detail.is_active is 'Does upstream still follow it?';
comment on column market.coin_detail.parent_id is 'Id of the coin it lives on, or came from; null when there is none.';
comment on column market.coin_detail.description is 'What it is, in English.';
comment on column market.coin_detail.message is 'What upstream wants known about it, where there is something.';
comment on column market.coin_detail.open_source is 'Is its source open?';
comment on column market.coin_detail.hardware_wallet is 'Do hardware wallets hold it?';
comment on column market.coin_detail.started_at is 'When it was launched; its data may begin later.';
comment on column market.coin_detail.development_status is 'As upstream words it: Working product.';
comment on column market.coin_detail.proof_type is 'Proof of Work, Proof of Stake …';
comment on column market.coin_detail.org_structure is 'Decentralized, Semi-centralized …';
comment on column market.coin_detail.hash_algorithm is 'SHA256, Ethash …';
comment on column market.coin_detail.platform_id is 'Platform of its first contract: market.platform.id.';
comment on column market.coin_detail.contract is 'Address of its first contract.';
comment on column market.coin_detail.logo_url is 'Address of its logo.';
comment on column market.coin_detail.whitepaper_url is 'Address of its white paper.';
comment on column market.coin_detail.first_data_at is 'Its data begin here, as upstream says.';
comment on column market.coin_detail.last_data_at is 'Newest data that upstream had of it then.';

create table market.coin_link (
  coin_id text not null,
  kind text not null,
  url text not null,
  valid_from timestamptz not null,
  valid_to timestamptz,
  constraint coin_link_coin_id_kind_url_valid_from_pk primary key (coin_id, kind, url, valid_from)
);
comment on table market.coin_link is 'Web pages of coins, with the time in which upstream listed each.';
comment on column market.coin_link.coin_id is 'market.coin.id.';
comment on column market.coin_link.kind is 'website, explorer, source_code, reddit …';
comment on column market.coin_link.url is 'The address.';
comment on column market.coin_link.valid_from is 'Instant of the first answer that says so.';
comment on column market.coin_link.valid_to is 'Instant of the first answer that no longer says so; null while it holds.';

create table market.position (
  coin_id text not null,
  person_id text not null,
  position text not null,
  valid_from timestamptz not null,
  valid_to timestamptz,
  constraint position_coin_id_person_id_position_valid_from_pk primary key (coin_id, person_id, position, valid_from)
);
create index position_of_person on market.position (person_id);
comment on table market.position is 'Who belongs to which coin, as what, with the time in which upstream said so.';
comment on column market.position.coin_id is 'market.coin.id.';
comment on column market.position.person_id is 'market.person.id.';
comment on column market.position.position is 'What the person is there: Founder; empty where upstream does not say.';
comment on column market.position.valid_from is 'Instant of the first answer that says so.';
comment on column market.position.valid_to is 'Instant of the first answer that no longer says so; null while it holds.';

create table market.coin_tag (
  coin_id text not null,
  tag_id text not null,
  valid_from timestamptz not null,
  valid_to timestamptz,
  constraint coin_tag_coin_id_tag_id_valid_from_pk primary key (coin_id, tag_id, valid_from)
);
create index coin_tag_of_tag on market.coin_tag (tag_id);
comment on table market.coin_tag is 'Which coin has which tag, with the time in which upstream said so.';
comment on column market.coin_tag.coin_id is 'market.coin.id.';
comment on column market.coin_tag.tag_id is 'market.tag.id.';
comment on column market.coin_tag.valid_from is 'Instant of the first answer that says so.';
comment on column market.coin_tag.valid_to is 'Instant of the first answer that no longer says so; null while it holds.';

create table market.tag (
  id text primary key,
  place integer not null,
  name text not null,
  type text,
  description text,
  coins integer,
  icos integer,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  gone_at timestamptz
);
comment on table market.tag is 'Tags, as last received. Older versions are in market.document_revision (kind tag), who has one in market.coin_tag.';
comment on column market.tag.id is 'Upstream id: smart-contracts.';
comment on column market.tag.place is 'Its place in the list of tags, from 0.';
comment on column market.tag.name is 'Name.';
comment on column market.tag.type is 'functional or technical.';
comment on column market.tag.description is 'What it means.';
comment on column market.tag.coins is 'How many coins have it, as upstream counts.';
comment on column market.tag.icos is 'How many initial coin offerings have it, as upstream counts.';
comment on column market.tag.first_seen_at is 'Instant of the first answer that lists it.';
comment on column market.tag.last_seen_at is 'Instant of the last answer that lists it.';
comment on column market.tag.gone_at is 'Instant of the first answer that no longer lists it; null while it is listed.';

create table market.person (
  id text primary key,
  as_of timestamptz not null,
  name text not null,
  description text,
  teams integer
);
comment on table market.person is 'People of the coins that are kept, as last received. Older versions are in market.document_revision (kind person).';
comment on column market.person.id is 'Upstream id: vitalik-buterin.';
comment on column market.person.as_of is 'Instant of the answer the values are of.';
comment on column market.person.name is 'Name.';
comment on column market.person.description is 'Who that is.';
comment on column market.person.teams is 'In how many teams, as upstream counts.';

create table market.platform (
  id text primary key,
  place integer not null,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  gone_at timestamptz
);
comment on table market.platform is 'Chains that contracts of coins live on.';
comment on column market.platform.id is 'Id of the coin whose chain it is: eth-ethereum.';
comment on column market.platform.place is 'Its place in the list of platforms, from 0.';
comment on column market.platform.first_seen_at is 'Instant of the first answer that lists it.';
comment on column market.platform.last_seen_at is 'Instant of the last answer that lists it.';
comment on column market.platform.gone_at is 'Instant of the first answer that no longer lists it; null while it is listed.';

create table market.contract (
  platform_id text not null,
  address text not null,
  coin_id text not null,
  type text,
  is_active boolean,
  valid_from timestamptz not null,
  valid_to timestamptz,
  constraint contract_platform_id_address_coin_id_valid_from_pk primary key (platform_id, address, coin_id, valid_from)
);
-- Hexadecimal addresses are written in any case.
create index contract_by_address on market.contract (platform_id, lower(address));
create index contract_of_coin on market.contract (coin_id);
comment on table market.contract is 'Contracts of coins, with the time in which upstream said so.';
comment on column market.contract.platform_id is 'market.platform.id.';
comment on column market.contract.address is 'Address of the contract, as upstream writes it.';
comment on column market.contract.coin_id is 'The coin behind it: market.coin.id.';
comment on column market.contract.type is 'ERC20 …';
comment on column market.contract.is_active is 'Does upstream call it active?';
comment on column market.contract.valid_from is 'Instant of the first answer that says so.';
comment on column market.contract.valid_to is 'Instant of the first answer that no longer says so; null while it holds.';

create table market.coin_event (
  coin_id text not null,
  id text not null,
  date timestamptz not null,
  date_to timestamptz,
  name text not null,
  description text,
  is_conference boolean,
  link text,
  proof_image_link text,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  gone_at timestamptz,
  constraint coin_event_coin_id_id_pk primary key (coin_id, id)
);
comment on table market.coin_event is 'Events of coins, as last received.';
comment on column market.coin_event.coin_id is 'market.coin.id.';
comment on column market.coin_event.id is 'Upstream id of the event.';
comment on column market.coin_event.date is 'When it is, or begins.';
comment on column market.coin_event.date_to is 'When it ends; null when upstream does not say.';
comment on column market.coin_event.name is 'Name.';
comment on column market.coin_event.description is 'What happens.';
comment on column market.coin_event.is_conference is 'Is it a conference?';
comment on column market.coin_event.link is 'Address of its page.';
comment on column market.coin_event.proof_image_link is 'Address of a picture that proves it.';
comment on column market.coin_event.first_seen_at is 'Instant of the first answer that lists it.';
comment on column market.coin_event.last_seen_at is 'Instant of the last answer that lists it.';
comment on column market.coin_event.gone_at is 'Instant of the first answer that no longer lists it; null while it is listed.';

create table market.coin_exchange (
  coin_id text not null,
  exchange_id text not null,
  name text not null,
  fiats text[] not null,
  adjusted_volume_24h_share double precision,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  gone_at timestamptz,
  constraint coin_exchange_coin_id_exchange_id_pk primary key (coin_id, exchange_id)
);
create index coin_exchange_of_exchange on market.coin_exchange (exchange_id);
comment on table market.coin_exchange is 'Exchanges on which a coin is traded, as last received.';
comment on column market.coin_exchange.coin_id is 'market.coin.id.';
comment on column market.coin_exchange.exchange_id is 'market.exchange.id.';
comment on column market.coin_exchange.name is 'Name of the exchange.';
comment on column market.coin_exchange.fiats is 'Symbols of the national currencies that it takes.';
comment on column market.coin_exchange.adjusted_volume_24h_share is 'Its share in the adjusted volume of the coin in the last 24 hours, in percent.';
comment on column market.coin_exchange.first_seen_at is 'Instant of the first answer that lists it.';
comment on column market.coin_exchange.last_seen_at is 'Instant of the last answer that lists it.';
comment on column market.coin_exchange.gone_at is 'Instant of the first answer that no longer lists it; null while it is listed.';

create table market.coin_market (
  coin_id text not null,
  exchange_id text not null,
  base_currency_id text not null,
  quote_currency_id text not null,
  pair text not null,
  category text not null,
  market_url text,
  fee_type text,
  outlier boolean,
  adjusted_volume_24h_share double precision,
  price double precision,
  volume_24h double precision,
  updated_at timestamptz,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  gone_at timestamptz,
  constraint coin_market_pk primary key (coin_id, exchange_id, base_currency_id, quote_currency_id, pair, category)
);
create index coin_market_of_exchange on market.coin_market (exchange_id);
comment on table market.coin_market is 'Markets of a coin, as last received.';
comment on column market.coin_market.coin_id is 'market.coin.id.';
comment on column market.coin_market.exchange_id is 'market.exchange.id.';
comment on column market.coin_market.base_currency_id is 'Id of the coin that is bought.';
comment on column market.coin_market.quote_currency_id is 'Id of the coin or currency that it is paid in.';
comment on column market.coin_market.pair is 'Symbols of the two: BTC/USDT.';
comment on column market.coin_market.category is 'Spot, Derivatives, OTC; empty where upstream does not say.';
comment on column market.coin_market.market_url is 'Address of its page.';
comment on column market.coin_market.fee_type is 'Percentage, No Fees …';
comment on column market.coin_market.outlier is 'Upstream leaves its price out of the average.';
comment on column market.coin_market.adjusted_volume_24h_share is 'Its share in the adjusted volume of the coin in the last 24 hours, in percent.';
comment on column market.coin_market.price is 'Price in US dollars.';
comment on column market.coin_market.volume_24h is 'Volume of the last 24 hours in US dollars.';
comment on column market.coin_market.updated_at is 'When upstream last updated it, as it says itself.';
comment on column market.coin_market.first_seen_at is 'Instant of the first answer that lists it.';
comment on column market.coin_market.last_seen_at is 'Instant of the last answer that lists it.';
comment on column market.coin_market.gone_at is 'Instant of the first answer that no longer lists it; null while it is listed.';

create table market.exchange_market (
  exchange_id text not null,
  base_currency_id text not null,
  quote_currency_id text not null,
  pair text not null,
  category text not null,
  market_url text,
  fee_type text,
  outlier boolean,
  reported_volume_24h_share double precision,
  price double precision,
  volume_24h double precision,
  updated_at timestamptz,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  gone_at timestamptz,
  constraint exchange_market_pk primary key (exchange_id, base_currency_id, quote_currency_id, pair, category)
);
comment on table market.exchange_market is 'Markets of an exchange, as last received.';
comment on column market.exchange_market.exchange_id is 'market.exchange.id.';
comment on column market.exchange_market.base_currency_id is 'Id of the coin that is bought.';
comment on column market.exchange_market.quote_currency_id is 'Id of the coin or currency that it is paid in.';
comment on column market.exchange_market.pair is 'Symbols of the two: BTC/USDT.';
comment on column market.exchange_market.category is 'Spot, Derivatives, OTC; empty where upstream does not say.';
comment on column market.exchange_market.market_url is 'Address of its page.';
comment on column market.exchange_market.fee_type is 'Percentage, No Fees …';
comment on column market.exchange_market.outlier is 'Upstream leaves its price out of the average.';
comment on column market.exchange_market.reported_volume_24h_share is 'Its share in the reported volume of the exchange in the last 24 hours, in percent.';
comment on column market.exchange_market.price is 'Price in US dollars.';
comment on column market.exchange_market.volume_24h is 'Volume of the last 24 hours in US dollars.';
comment on column market.exchange_market.updated_at is 'When upstream last updated it, as it says itself.';
comment on column market.exchange_market.first_seen_at is 'Instant of the first answer that lists it.';
comment on column market.exchange_market.last_seen_at is 'Instant of the last answer that lists it.';
comment on column market.exchange_market.gone_at is 'Instant of the first answer that no longer lists it; null while it is listed.';
