# A PostgreSQL cluster that lives as long as the script that starts it; sourced by
# `test` and `bench`, which have a function `say` and a trap that calls
# `stop_cluster`.
#
# The cluster is under /tmp, owned by an unprivileged user (the server refuses to
# run as root), on a free port of the loopback address.
#
#   find_server_programs    sets HERMES_TEST_PG_BIN and HERMES_TEST_PG_USER,
#                           installs the programs where it can
#   start_cluster           sets cluster_url; cluster_settings are lines for its
#                           configuration
#   stop_cluster            ends it and removes everything of it

cluster=
cluster_url=

# Prints the newest directory that holds the server programs, or nothing.
find_pg_bin() {
  local dir
  while IFS= read -r dir; do
    if [[ -x $dir/initdb && -x $dir/pg_ctl && -x $dir/postgres ]]; then
      printf '%s\n' "$dir"
      return
    fi
  done < <(
    printf '%s\n' /usr/lib/postgresql/*/bin /usr/pgsql-*/bin | sort -rV
    # initdb finds postgres beside itself, so a link is followed to its home.
    if command -v initdb >/dev/null; then dirname -- "$(readlink -f -- "$(command -v initdb)")"; fi
    if command -v pg_config >/dev/null; then pg_config --bindir; fi
  )
}

# The user that runs the server: nobody in particular, but never root.
find_pg_user() {
  local name
  if [[ $EUID -ne 0 ]]; then return; fi
  for name in postgres nobody; do
    if id -u "$name" >/dev/null 2>&1; then
      printf '%s\n' "$name"
      return
    fi
  done
  say "neither the user postgres nor nobody exists; PostgreSQL cannot run as root"
  return 1
}

# Runs a server program as the unprivileged user.
as_pg() {
  if [[ -z $HERMES_TEST_PG_USER ]]; then
    "$@"
  elif command -v setpriv >/dev/null; then
    setpriv --reuid="$HERMES_TEST_PG_USER" --regid="$(id -g "$HERMES_TEST_PG_USER")" --clear-groups -- "$@"
  else
    runuser -u "$HERMES_TEST_PG_USER" -- "$@"
  fi
}

# Sets where the server programs are and whom to run them as; both stay empty
# where there are none and nobody needs them.
find_server_programs() {
  HERMES_TEST_PG_BIN=$(find_pg_bin)
  if [[ -z $HERMES_TEST_PG_BIN && -z ${TEST_DATABASE_URL:-} ]]; then
    if [[ $EUID -eq 0 ]] && command -v apt-get >/dev/null; then
      say "installing the PostgreSQL server programs"
      scripts/install-postgres
      HERMES_TEST_PG_BIN=$(find_pg_bin)
    else
      say "the tests need the PostgreSQL server programs; install them with this line and run again:"
      printf '\n  sudo %q\n\n' "$PWD/scripts/install-postgres" >&2
      say "(it runs: apt-get install -y --no-install-recommends postgresql, without starting a cluster;"
      say "or set TEST_DATABASE_URL to a superuser's URL of a server that tests may use)"
      exit 2
    fi
  fi
  HERMES_TEST_PG_USER=
  if [[ -n $HERMES_TEST_PG_BIN ]]; then HERMES_TEST_PG_USER=$(find_pg_user); fi
}

start_cluster() {
  cluster=$(mktemp -d /tmp/hermes-pg.XXXXXX)
  # A superuser may run programs as the server's user, so other users of this
  # machine must not be able to connect.
  local password
  password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  printf '%s\n' "$password" >"$cluster/password"
  if [[ -n $HERMES_TEST_PG_USER ]]; then
    chown -R "$HERMES_TEST_PG_USER:$(id -g "$HERMES_TEST_PG_USER")" "$cluster"
  fi
  # initdb and pg_ctl insist on a working directory they may read.
  (
    cd -- "$cluster"
    as_pg "$HERMES_TEST_PG_BIN/initdb" -D "$cluster/data" -U postgres -A password --pwfile="$cluster/password" \
      -E UTF8 --locale=C --no-sync >"$cluster/initdb.log" 2>&1
  ) || { cat -- "$cluster/initdb.log" >&2; return 1; }
  cat >>"$cluster/data/postgresql.conf" <<CONF
listen_addresses = '127.0.0.1'
unix_socket_directories = '$cluster'
max_connections = 200
logging_collector = off
$cluster_settings
CONF
  # A port that looks free may be taken a moment later, so another is tried.
  local attempt port
  for attempt in 1 2 3 4 5 6 7 8 9 10; do
    # Below the range from which Linux picks ports for outgoing connections.
    port=$((20000 + RANDOM % 12000))
    if start_on "$port"; then
      cluster_url="postgres://postgres:$password@127.0.0.1:$port/postgres"
      say "PostgreSQL from $HERMES_TEST_PG_BIN on port $port, in $cluster"
      return
    fi
    grep -qs 'Address already in use' "$cluster/server.log" || break
    say "port $port is taken, trying another (attempt $attempt)"
  done
  cat -- "$cluster/server.log" >&2
  return 1
}

start_on() {
  rm -f -- "$cluster/server.log"
  (
    cd -- "$cluster"
    as_pg "$HERMES_TEST_PG_BIN/pg_ctl" start -D "$cluster/data" -l "$cluster/server.log" -s -w -t 60 -o "-p $1" \
      </dev/null >/dev/null 2>&1
  )
}

stop_cluster() {
  if [[ -n $cluster ]]; then
    if [[ -f $cluster/data/postmaster.pid ]]; then
      as_pg "$HERMES_TEST_PG_BIN/pg_ctl" stop -D "$cluster/data" -m immediate -s -w -t 30 >/dev/null 2>&1 || true
    fi
    rm -rf -- "$cluster"
  fi
}
