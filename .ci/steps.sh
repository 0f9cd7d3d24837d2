# Steps of .ci/run, for bash; it sources this, with a folder of its own in $scratch.

started=$SECONDS
declare -A beside=() # process group by the name of a step that runs beside others

step() {
  printf '\n== %s (at %d s)\n' "$1" "$((SECONDS - started))"
}

fail() {
  printf 'FAILED: %s\n' "$1" >&2
  exit 1
}

# start NAME COMMAND…: begin a step beside those that follow; its output is kept until it is finished.
start() {
  local name=$1
  shift
  set -m # a process group of its own, so that all of it can be ended
  "$@" >"$scratch/$name.log" 2>&1 &
  beside[$name]=$!
  set +m
}

# finish NAME: wait for it and show the end of its output; fail if it failed.
finish() {
  local status=0
  wait "${beside[$1]}" || status=$?
  unset "beside[$1]"
  tail -n 60 "$scratch/$1.log"
  [ "$status" -eq 0 ] || fail "$1 ended with status $status"
}

# End what still runs beside.
end_all() {
  for group in "${beside[@]}"; do
    kill -- "-$group" 2>/dev/null || true
  done
}
