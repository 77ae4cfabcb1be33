#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the suite with a real k3s, whose path is in K3S, in namespaces of its own: the server and the tests in one network, the
# agent in another, and the files of both in memory. Needs root. Without K3S the tests are skipped.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
suite=(vitest run --config test/k3s/vitest.config.ts "$@")
if [ -z "${K3S:-}" ]; then exec "${suite[@]}"; fi

server=pvescaler-k3s-server-$$ agent=pvescaler-k3s-agent-$$
work=$(mktemp -d)
list_groups() { find /sys/fs/cgroup -depth -type d -path '*/kubepods*'; }
groups_before=$(list_groups)
clean_up() {
  ip netns delete "$server"
  ip netns delete "$agent"
  rmdir "$work"
  # The kubelet leaves empty control groups; those of another kubelet on this machine stay.
  if [ -z "$groups_before" ]; then list_groups | xargs --no-run-if-empty rmdir; fi
}
trap 'clean_up || true' EXIT
ip netns add "$server"
ip netns add "$agent"
ip link add server netns "$server" type veth peer name agent netns "$agent"
ip -n "$server" address add 10.99.0.1/24 dev server
ip -n "$agent" address add 10.99.0.2/24 dev agent
for end in server agent; do
  ip -n "${!end}" link set lo up
  ip -n "${!end}" link set "$end" up
done
# Both choose the address of their default route as their own.
ip -n "$server" route add default via 10.99.0.2
ip -n "$agent" route add default via 10.99.0.1
K3S=$(realpath "$K3S") AGENT_NETWORK=/run/netns/$agent TMPDIR=$work nsenter --net="/run/netns/$server" \
  unshare --mount bash -c 'mount -t tmpfs tmpfs "$TMPDIR" && exec "$@"' bash "${suite[@]}"
