#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh OUT TOOLS: builds a Debian image with cloud-init, the guest agent, containerd, a CNI network, and the kubelet and
# kubeadm from the folder TOOLS. Writes OUT/{disk.qcow2,vmlinuz,initrd.img}. Needs root; installs its tools with apt.
set -euo pipefail
out=$1 tools=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
packages=(systemd-sysv udev dbus linux-image-cloud-amd64 initramfs-tools zstd cloud-init netplan.io systemd-resolved
  qemu-guest-agent containerd runc containernetworking-plugins iproute2 iptables conntrack ethtool socat kmod e2fsprogs
  cloud-guest-utils fdisk sudo ca-certificates curl eject openssl procps)

command -v mmdebstrap >/dev/null && command -v qemu-img >/dev/null && command -v qemu-system-x86_64 >/dev/null || {
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends mmdebstrap qemu-system-x86 qemu-utils
}

mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mmdebstrap --quiet --variant=minbase --include="$(
  IFS=,
  echo "${packages[*]}"
)" trixie "$root"

install -m 0755 "$tools/kubelet" "$tools/kubeadm" "$root/usr/bin/"
cp -r "$here/files/." "$root/"
echo '/dev/vda / ext4 defaults 0 1' >"$root/etc/fstab"
: >"$root/etc/machine-id"
rm -f "$root/etc/hostname"
ln -sf /run/systemd/resolve/stub-resolv.conf "$root/etc/resolv.conf"
for unit in systemd-networkd systemd-resolved containerd; do systemctl --quiet --root="$root" enable "$unit"; done
cp "$root"/boot/vmlinuz-* "$out/vmlinuz"
cp "$root"/boot/initrd.img-* "$out/initrd.img"
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/*

truncate -s 4G "$work/disk.raw"
mkfs.ext4 -q -d "$root" "$work/disk.raw"
qemu-img convert -O qcow2 "$work/disk.raw" "$out/disk.qcow2"
