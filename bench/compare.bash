# Sourced by run-cholesky and run-qr: heddle beside its peers, shape by shape, as a table or in
# turns. How the figures are made: bench/README.md. The script that sources this defines
#   program operation heading shape_title shape_option   words; the heading says THREADS for their number
#   shapes peers tiles           what is measured unless options say otherwise
#   binary[PEER] title[PEER]     all peers there are; dgemm is one of them
#   usage                        ends with common_usage
#   candidates PEER              what may be varied: words, one for each choice
#   make_command PEER SHAPE CANDIDATE REPETITIONS WARM_UP   leaves the driver's call in `command`
#   chosen LINE CANDIDATE        the choice as the table names it; nothing if there was none
#   order_of SHAPE               of a square matrix with as many operations
#   proportions SHAPE            one word: past order 4000, what was best for a smaller shape of the
#                                same proportions says where to search
#   ratio_rows                   the last rows of the table
# shellcheck shell=bash disable=SC2034,SC2154

# shellcheck source=bench/support.bash
source "$(dirname "${BASH_SOURCE[0]}")/support.bash"

repetitions=5
rounds=11
attempts=4
warm_up=1
coretype=auto
pair=()
output=/dev/null

common_usage() {
  cat <<'TEXT'
  --repetitions R      runs per figure, the median counts (default 5)
  --threads T          computing threads of one process (default 2)
  --dgemm-order N      of the DGEMM that is the 100 % (default 3072)
  --attempts A         at a figure, until the machine is calm (default 4)
  --no-warm-up         time the first run too, where one takes minutes
  --coretype NAME      OpenBLAS kernel set; auto measures which is best, default leaves it to OpenBLAS
  --pair "[OURS] PEER" no table: OURS (heddle; heddle2 for scalapack) and PEER in turns, ratios of
                       neighbours; the peer may be dgemm; traced and
                       traced2 are heddle and heddle2 with the trace on
  --rounds R           pairs of runs in that mode (default 11)
  --build FOLDER       where the binaries were built (default build/release)
  --output FILE        also write the table there
TEXT
}

# common_option OPTION VALUE...: takes an option that both scripts have, or ends; leaves in `taken` how many words it was.
common_option() {
  taken=2
  case $1 in
    --no-warm-up) warm_up=0 taken=1; return ;;
    "$shape_option" | --peers | --tiles | --threads | --dgemm-order | --repetitions | --attempts | \
      --coretype | --pair | --rounds | --build | --output)
      [[ $# -ge 2 ]] || { echo "$program: $1 needs a value" >&2; exit 2; }
      ;;
    *) usage >&2; exit 2 ;;
  esac
  case $1 in
    "$shape_option") read -ra shapes <<<"$2" ;;
    --peers) read -ra peers <<<"$2" ;;
    --tiles) read -ra tiles <<<"$2" ;;
    --threads) threads=$2 ;;
    --dgemm-order) dgemm_order=$2 ;;
    --repetitions) repetitions=$2 ;;
    --attempts) attempts=$2 ;;
    --coretype) coretype=$2 ;;
    --pair) read -ra pair <<<"$2" ;;
    --rounds) rounds=$2 ;;
    --build) bin=$(cd "$2" && pwd)/bin ;;
    --output) output=$2 ;;
  esac
}

# run_peer PEER SHAPE CANDIDATE REPETITIONS WARM_UP: the driver's line; says why if there is none.
run_peer() {
  local command=()
  make_command "$@"
  limited "${command[@]}" 2>"$errors" | grep "^peer=.* op=\($operation\|dgemm\) " && return
  say "$1 $2 $3: no figure within the time limit; ${command[*]}: $(tail -n 1 "$errors")"
  return 1
}

# The winner of the last search for each peer, and the proportions of its shape.
declare -A best=() best_proportions=()

# around WINNER CANDIDATE...: the winner and its neighbours in the list.
around() {
  local winner=$1 i
  shift
  local list=("$@")
  for i in "${!list[@]}"; do
    if [[ ${list[i]} == "$winner" ]]; then
      local from=$((i > 0 ? i - 1 : 0))
      echo "${list[@]:from:i-from+2}"
    fi
  done
}

# tune PEER SHAPE: leaves the best candidate for this shape in best[PEER]. All are tried up to order
# 4000; past that the last winner and its neighbours; past 30000, where a run takes minutes, it stays.
tune() {
  local peer=$1 shape=$2 list=() candidate line figure top=0 winner="" order repeat
  read -ra list <<<"$(candidates "$peer")"
  if [[ ${#list[@]} -eq 1 ]]; then
    best[$peer]=${list[0]}
    return
  fi
  order=$(order_of "$shape")
  repeat=$((order > 2000 ? 3 : 9))
  if [[ $order -gt 4000 && ${best_proportions[$peer]:-} == "$(proportions "$shape")" ]]; then
    [[ $order -le 30000 ]] || return 0
    repeat=1
    read -ra list <<<"$(around "${best[$peer]}" "${list[@]}")"
  fi
  for candidate in "${list[@]}"; do
    line=$(run_peer "$peer" "$shape" "$candidate" "$repeat" $((repeat > 1))) || continue
    figure=$(field gflops_best "$line")
    if greater "$figure" "$top"; then top=$figure winner=$candidate; fi
  done
  [[ -n $winner ]] || return 1
  best[$peer]=$winner
  best_proportions[$peer]=$(proportions "$shape")
}

# Of the peers asked for, those that are built.
built_peers() {
  local peer
  for peer in "${peers[@]}"; do
    if have "${binary[$peer]}"; then echo "$peer"
    else say "$peer is left out: there is no $bin/${binary[$peer]}"; fi
  done
}

declare -A rate=() cell=()

# One figure, DGEMM right before and after it. Where the two differ by more than 5 %, something else
# used the machine meanwhile: more attempts, then the figure is marked with a tilde.
measure() {
  local peer=$1 shape=$2 before after line choice attempt calm="~"
  tune "$peer" "$shape" || return 0
  for ((attempt = 1; attempt <= attempts; ++attempt)); do
    before=$(dgemm_now)
    line=$(run_peer "$peer" "$shape" "${best[$peer]}" "$repetitions" "$warm_up") || return 0
    after=$(dgemm_now)
    say "$line dgemm_before=$before dgemm_after=$after attempt=$attempt"
    if ! greater "($before - $after) ^ 2" "(0.05 * $before) ^ 2"; then
      calm=""
      break
    fi
  done
  rate[$peer,$shape]=$(field gflops_median "$line")
  cell[$peer,$shape]=$calm$(calculate "${rate[$peer,$shape]}" %.1f)
  cell[$peer,$shape]+=$(calculate "200 * ${rate[$peer,$shape]} / ($before + $after)" ' (%.0f %%)')
  choice=$(chosen "$line" "${best[$peer]}")
  cell[$peer,$shape]+=${choice:+ $choice}
}

# best_of SHAPE PEER...: the highest rate among them.
best_of() {
  local shape=$1 peer top=0
  shift
  for peer in "$@"; do
    if greater "${rate[$peer,$shape]:-0}" "$top"; then top=${rate[$peer,$shape]}; fi
  done
  echo "$top"
}

ratio_row() { # TITLE OURS PEER...
  local name=$1 ours=$2 shape top
  shift 2
  printf '| %s |' "$name"
  for shape in "${shapes[@]}"; do
    top=$(best_of "$shape" "$@")
    if [[ -n ${rate[$ours,$shape]:-} ]] && greater "$top" 0; then
      calculate "${rate[$ours,$shape]} / $top" ' %.3f |'
    else printf ' – |'; fi
  done
  printf '\n'
}

table() { # PEER...
  local peer shape
  echo "${heading/THREADS/$threads}"
  echo "~ where other load was on the machine."
  echo
  printf '| %s |' "$shape_title ="; printf ' %s |' "${shapes[@]}"
  printf '\n| --- |'; printf ' --- |%.0s' "${shapes[@]}"
  printf '\n'
  for peer in "$@"; do
    printf '| %s |' "${title[$peer]}"
    for shape in "${shapes[@]}"; do printf ' %s |' "${cell[$peer,$shape]:-–}"; done
    printf '\n'
  done
  ratio_rows
  echo
  describe_machine
}

# Alternating runs of two: what a noisy machine does, it does to both alike.
compare_pair() { # OURS PEER
  local ours=$1 peer=$2 shape
  printf '| %s | %s | %s | ratio, median (quartiles) of %s |\n| --- | --- | --- | --- |\n' \
    "$shape_title" "${title[$ours]}" "${title[$peer]}" "$rounds"
  for shape in "${shapes[@]}"; do
    if ! { tune "$peer" "$shape" && tune "$ours" "$shape" && pair_row "$ours" "$peer" "$shape"; }; then
      echo "$program: no comparison for $shape_title = $shape" >&2
      exit 1
    fi
  done
  echo
  describe_machine
}

pair_row() { # OURS PEER SHAPE
  local ours=$1 peer=$2 shape=$3 order repeat round one line
  local mine=() theirs=() ratios=() turn=()
  local -A figure=() choice=()
  order=$(order_of "$shape")
  repeat=$((order > 4000 ? 1 : order > 1000 ? 5 : 15))
  for ((round = 0; round < rounds; ++round)); do
    # Each goes first in every other round.
    if ((round % 2)); then turn=("$peer" "$ours"); else turn=("$ours" "$peer"); fi
    for one in "${turn[@]}"; do
      line=$(run_peer "$one" "$shape" "${best[$one]}" "$repeat" 1) || return 1
      figure[$one]=$(field gflops_median "$line")
      choice[$one]=$(chosen "$line" "${best[$one]}")
    done
    mine+=("${figure[$ours]}")
    theirs+=("${figure[$peer]}")
    ratios+=("$(calculate "${figure[$ours]} / ${figure[$peer]}")")
  done
  local my_median their_median low middle high
  read -r _ my_median _ <<<"$(printf '%s\n' "${mine[@]}" | quartiles)"
  read -r _ their_median _ <<<"$(printf '%s\n' "${theirs[@]}" | quartiles)"
  read -r low middle high <<<"$(printf '%s\n' "${ratios[@]}" | quartiles)"
  printf '| %s | %.1f%s | %.1f%s | %.3f (%.3f to %.3f) |\n' "$shape" \
    "$my_median" "${choice[$ours]:+ ${choice[$ours]}}" \
    "$their_median" "${choice[$peer]:+ ${choice[$peer]}}" "$middle" "$low" "$high"
}

# need BINARY...: ends if one is not built.
need() {
  local needed
  for needed in "$@"; do
    have "$needed" || { echo "$program: no $bin/$needed; build the release preset" >&2; exit 1; }
  done
}

# All that the options ask for.
compare() {
  local peer shape found=()
  need dgemm_peak tile_rates
  case ${#pair[@]} in
    0 | 2) ;;
    1) if [[ ${pair[0]} == scalapack ]]; then pair=(heddle2 scalapack); else pair=(heddle "${pair[0]}"); fi ;;
    *) usage >&2; exit 2 ;;
  esac
  for peer in "${peers[@]}" "${pair[@]}"; do
    [[ -n ${binary[$peer]:-} ]] || { echo "$program: no peer is called '$peer'" >&2; exit 2; }
  done
  errors=$(mktemp "${TMPDIR:-/tmp}/heddle-bench.XXXXXX")
  trap 'rm -f "$errors" "$errors.json"' EXIT
  use_coretype "$coretype"
  if [[ ${#pair[@]} -gt 0 ]]; then
    for peer in "${pair[@]}"; do
      have "${binary[$peer]}" ||
        { echo "$program: --pair needs $bin/${binary[$peer]}, which is not built" >&2; exit 1; }
    done
    compare_pair "${pair[@]}" | tee "$output"
    return
  fi
  mapfile -t found < <(built_peers)
  for shape in "${shapes[@]}"; do
    for peer in "${found[@]}"; do measure "$peer" "$shape"; done
  done
  table "${found[@]}" | tee "$output"
}
