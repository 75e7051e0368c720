#!/bin/bash
# Gives the role analyst its password; run again, it gives it a new one. Needs PGHOST, PGUSER, PGPASSWORD, PGDATABASE.
set -eu
for name in ANALYST_PASSWORD GRAFANA_PASSWORD; do
  if [ -z "${!name:-}" ]; then
    echo "error: $name is not set; fill it in .env, see .env.example" >&2
    exit 2
  fi
done
exec psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --file="$(dirname "$0")/analyst.sql"
