# Sourced by the scripts: named phases of work, how long each took, and the table of them.
# shellcheck shell=bash

phase_names=()
phase_seconds=()

# phase NAME COMMAND...: runs the command, notes its time; its failure ends the script with the
# table and the command's status.
phase() {
  local name=$1 begin=$EPOCHREALTIME status=0
  shift
  printf '\n== %s\n' "$name"
  "$@" || status=$?
  phase_names+=("$name")
  phase_seconds+=("$(awk -v b="$begin" -v e="$EPOCHREALTIME" 'BEGIN { printf "%.1f", e - b }')")
  if [[ $status -ne 0 ]]; then
    print_phases
    echo "failed in: $name (status $status)" >&2
    exit "$status"
  fi
}

print_phases() {
  local i
  printf '\nwhere the time went:\n'
  for i in "${!phase_names[@]}"; do
    printf '  %8.1f s  %s\n' "${phase_seconds[i]}" "${phase_names[i]}"
  done
  printf '%s\n' "${phase_seconds[@]}" | awk '{ s += $1 } END { printf "  %8.1f s  in all\n", s }'
}
