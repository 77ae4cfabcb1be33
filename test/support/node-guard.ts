// SPDX-License-Identifier: Apache-2.0
// With npm's ignore-scripts the `node` package installs no binary and tests would silently run on the system's Node,
// which is not the supported version.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 15)) {
  throw new Error(
    `tests need Node 24.15 or newer, this is ${process.version}; run them with \`npm test\``,
  );
}
