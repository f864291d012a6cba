# Sourced by the run-* scripts: where the drivers are, how their lines are read, what machine this is.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=$root/build/release/bin
load_at_start=$(cut -d" " -f1-3 /proc/loadavg)
time_limit=300 # seconds that one run may take
threads=2      # that compute in one process
dgemm_order=3072
limited() { timeout "$time_limit" "$@"; }

export STARPU_SILENT=1
# StarPU keeps machine files in the home folder otherwise.
export STARPU_HOME=${TMPDIR:-/tmp}

say() { echo "[bench] $*" >&2; }

have() { [[ -x $bin/$1 ]]; }

# field NAME LINE: the value behind NAME= in a driver's line; empty if it has none.
field() {
  local word
  for word in $2; do
    if [[ $word == "$1="* ]]; then echo "${word#*=}"; return; fi
  done
}

# json_number NAME FILE: the first value behind "NAME": in a report.
json_number() { grep -o "\"$1\": *[^,}]*" "$2" | head -1 | sed 's/.*: *//'; }

# calculate EXPRESSION [FORMAT]: arithmetic on decimal numbers.
calculate() { awk "BEGIN { printf \"${2:-%.6g}\", $1 }"; }
greater() { awk "BEGIN { exit !($1 > $2) }"; }

# Quartiles of the numbers on standard input: "lower median upper".
quartiles() {
  sort -g | awk '{ x[NR] = $1 }
    function at(q, p, i) { p = 1 + q * (NR - 1); i = int(p); return x[i] + (p - i) * (x[i < NR ? i + 1 : i] - x[i]) }
    END { if (NR) printf "%.4f %.4f %.4f\n", at(0.25), at(0.5), at(0.75) }'
}

# DGEMM of all threads, now, GFLOP/s: the 100 % of the figure measured next to it.
dgemm_now() { field gflops_median "$("$bin/dgemm_peak" --n "$dgemm_order" --threads "$threads" --repetitions 2)"; }

# The fastest kernel set that OpenBLAS can load here, by what a tile Cholesky would make of the
# rates of its tile kernels. A set that this processor cannot run ends with a signal and is left out;
# one that OpenBLAS does not know loads its own choice, which is measured anyway.
best_coretype() {
  local candidate choice line rate best=default best_rate=0
  for candidate in default HASWELL ZEN SKYLAKEX COOPERLAKE; do
    choice=(-u OPENBLAS_CORETYPE)
    [[ $candidate == default ]] || choice=(OPENBLAS_CORETYPE="$candidate")
    line=$(env "${choice[@]}" "$bin/tile_rates" --nb 256 --repetitions 9 2>/dev/null |
      grep ' op=mix ') || { say "kernel set $candidate: does not run here"; continue; }
    rate=$(field gflops_median "$line")
    say "kernel set $candidate ($(field coretype "$line")): $rate GFLOP/s on one core"
    if greater "$rate" "$best_rate"; then best=$candidate best_rate=$rate; fi
  done
  echo "$best"
}

# use_coretype NAME: exports it for every driver; `auto` measures first.
use_coretype() {
  local name=$1
  [[ $name != auto ]] || name=$(best_coretype)
  if [[ $name == default ]]; then unset OPENBLAS_CORETYPE; else export OPENBLAS_CORETYPE=$name; fi
}

package_version() { dpkg-query --show --showformat='${Version}' "$1" 2>/dev/null || echo "absent"; }

describe_processor() {
  lscpu | awk -F': *' '/^(Model name|CPU\(s\)|L2 cache|L3 cache)/ { printf "%s%s %s", s, $1, $2; s = "; " }
    END { print "" }' | sed 's/^/- machine: /'
  echo "- processor: $(lscpu | awk -F': *' '/^CPU family/ { f = $2 } /^Model:/ { m = $2 }
    END { print "family " f " model " m }'), $(grep -qw avx512f /proc/cpuinfo && echo with || echo without) AVX-512"
  echo "- load averages at the start: $load_at_start"
}

describe_heddle() {
  local commit
  commit=$(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown)
  [[ -z $(git -C "$root" status --porcelain 2>/dev/null) ]] || commit+=" with local changes"
  echo "- heddle $commit, $(date -u +%Y-%m-%d)"
}

describe_machine() {
  describe_processor
  echo "- environment: $(env | grep "^OPENBLAS_" | sort | paste -s -d " ")"
  echo "- OpenBLAS $(package_version libopenblas0-pthread), kernel set $(field coretype \
    "$("$bin/dgemm_peak" --n 64 --repetitions 1)")"
  echo "- g++ $(package_version g++-12), MPICH $(package_version libmpich12)," \
    "ScaLAPACK $(package_version libscalapack-mpich2.2), StarPU $(package_version libstarpu-1.3-9)"
  describe_heddle
}
