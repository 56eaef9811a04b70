#!/usr/bin/env bash
# Runs once, when the database's volume is new: an ordinary owner for the
# server's tables. As a superuser it would bypass row-level security, which is
# the second wall between tenants.
set -euo pipefail
psql -v ON_ERROR_STOP=1 -v password="$HERMES_DB_PASSWORD" --username postgres <<'SQL'
create role hermes login password :'password';
create role hermes_app nologin;
grant hermes_app to hermes;
create database hermes owner hermes encoding 'UTF8' locale 'C' template template0;
SQL
