#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the commands of the README's quick start and those that build the program for a real Proxmox: clones HEAD into an
# empty folder, with a PATH that has only Node, npm, git and basic shell tools. `npm test` runs a sample, because CI runs all of it in another tier;
# `npm run test:fresh-clone -- --all` runs everything.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

report() { # name, exit code
  if [ "$2" -eq 0 ]; then passed=$((passed + 1)); echo "✓ $1"; else failed=$((failed + 1)); echo "✗ $1"; fi
}

# Only these programs are available, so that a missing install step is not hidden by a tool of this machine.
mkdir "$work/bin"
for tool in node npm npx git sh bash env cat ls mkdir rm cp mv ln chmod dirname basename uname tr sed head tail sleep find wc install; do
  path=$(command -v "$tool") && ln -s "$path" "$work/bin/$tool"
done
# npm puts this project's node_modules/.bin in front when it runs a script; the clone must not see it.
node=$(PATH=$(printf '%s' "$PATH" | tr ':' '\n' | grep -v "^$root/" | paste -sd:) command -v node)
ln -sf "$node" "$work/bin/node"

run() { env PATH="$work/bin" REPOSITORY="$root" "$@"; }
section() { # file, heading: its commands
  awk -v heading="$2" '
    /^```/ { isShell = !inside && $0 == "```sh"; inside = !inside; next }
    !inside && /^#/ { isFound = substr($0, index($0, " ") + 1) == heading }
    isShell && isFound' "$root/$1"
}

echo "fresh clone: npm run demo"
cd "$work" || exit 1
# With --once the demo ends by itself.
run bash -e -c "$(section README.md 'Sixty seconds' | sed 's/npm run demo/& -- --once/')" >"$work/demo.log" 2>&1
code=$?
cd "$work/pvescaler" || exit 1
tail -n 20 "$work/demo.log"
report 'npm run demo works on a fresh clone' "$code"
grep -q 'installing dependencies' "$work/demo.log"
report 'npm run demo reports that it installs dependencies' $?

sample=(scripts src/config src/sim/proxmox/api test/cli/cli.test.ts test/cli/sim.test.ts test/system)
[ "${1:-}" = --all ] && sample=()
echo "fresh clone: npm test -- ${sample[*]}"
run npm test -- "${sample[@]}" >"$work/test.log" 2>&1
code=$?
grep -E 'FAIL|Error' "$work/test.log" | head -n 20
tail -n 8 "$work/test.log"
report "npm test works on a fresh clone: ${sample[*]:-everything}" "$code"
! grep -q 'installing dependencies' "$work/test.log"
report 'the second command does not install again' $?

run npx pvescaler --help >"$work/help.log" 2>&1 && grep -q 'Usage: pvescaler' "$work/help.log"
report 'npx pvescaler --help works' $?
echo "fresh clone: the package and the single-file binary"
mkdir "$work/package" "$work/installed"
run npm pack --silent --pack-destination "$work/package" >"$work/pack.log" 2>&1
# No registry is asked: the package has no dependencies.
run npm install --offline --silent --prefix "$work/installed" "$work"/package/*.tgz >>"$work/pack.log" 2>&1 || cat "$work/pack.log"
[ "$(ls "$work/installed/node_modules")" = pvescaler ]
report 'the package installs without dependencies' $?
bytes=$(cat $(find "$work/installed" -type f) | wc -c)
echo "installed: $bytes bytes"
[ "$bytes" -le 15000000 ]
report 'the installed package has at most 15 MB' $?
mkdir "$work/local"
# The clone exists; /usr/local/bin needs root.
section docs/guides/real-proxmox.md '2. The program' |
  sed "/^git clone/d; /^cd /d; s|/usr/local/bin|$work/local|" >"$work/binary.sh"
run bash -e "$work/binary.sh" >"$work/binary.log" 2>&1 || cat "$work/binary.log"
for program in "$work/installed/node_modules/.bin/pvescaler" "$work/local/pvescaler"; do
  run env PVESCALER="$program" npm test -- test/cli/serve-kubernetes.test.ts >"$work/program.log" 2>&1
  code=$?
  grep -E 'FAIL|Error' "$work/program.log" | head -n 20
  tail -n 4 "$work/program.log"
  report "$(basename "$(dirname "$program")")/pvescaler creates machines and serves the Cluster Autoscaler" "$code"
done

[ -z "$(git status --porcelain)" ]
report 'the work tree is unchanged' $?

mkdir -p "$root/.test-results"
printf '{"numPassedTests":%d,"numFailedTests":%d}\n' "$passed" "$failed" >"$root/.test-results/fresh-clone.json"
[ "$failed" -eq 0 ]
