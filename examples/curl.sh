#!/usr/bin/env bash
# The main job with curl alone: a session, a streamed turn, an approval, the
# transcript.
#
#   HERMES_API_KEY=$(cat data/api-key) examples/curl.sh
set -euo pipefail

url=${HERMES_URL:-http://127.0.0.1:8642}
choice=${1:-once} # or: session, always, deny

ask() { # ask PATH [CURL ARGUMENTS…]
  local path=$1
  shift
  curl -sS --fail-with-body -H "Authorization: Bearer $HERMES_API_KEY" -H 'Content-Type: application/json' \
    "$url$path" "$@"
}
first() { grep -o "$1_[0-9a-z]\{26\}" | head -n 1; }

echo "== a session"
session=$(ask /v1/sessions -d '{"preset": "hermes-api-server", "title": "From curl"}' | first ses)
echo "$session"

echo "== a turn, as the model speaks"
ask "/v1/sessions/$session/turns" -N -H 'Accept: text/plain' -d '{"input": "/say Hello from the model."}'
echo

echo "== a turn whose call needs a person"
# With `wait` the answer comes when the turn is over or asks somebody.
asked=$(ask "/v1/sessions/$session/turns?wait=30" \
  -d '{"input": "/tool terminal {\"command\":\"rm -rf build\"}\n/then\n/say That was all."}')
turn=$(first turn <<<"$asked")
approval=$(first apr <<<"$asked")
echo "$turn waits for $approval"

echo "== the decision"
ask "/v1/approvals/$approval/decision" -d "{\"choice\": \"$choice\", \"reason\": \"as the walk-through says\"}"
echo

echo "== the turn's events, from its first to its last"
# The stream ends behind the turn's last event. One that broke off is taken up
# again behind the last `id:` that was seen, as `?after=` or `Last-Event-ID`.
ask "/v1/sessions/$session/turns/$turn/stream" -N -H 'Accept: text/event-stream'

echo "== the transcript"
ask "/v1/sessions/$session/messages"
echo
