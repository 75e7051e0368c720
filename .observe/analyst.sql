-- The role is made, and admitted to the schema market, by chandler migrate.
\getenv password ANALYST_PASSWORD
alter role analyst with login password :'password' connection limit 20;
-- A question that asks too much ends by itself and holds nothing up.
alter role analyst set default_transaction_read_only = on;
alter role analyst set statement_timeout = '60s';
alter role analyst set idle_in_transaction_session_timeout = '10min';
