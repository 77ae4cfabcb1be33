// SPDX-License-Identifier: Apache-2.0
// With npm's ignore-scripts the `node` package brings no binary and everything silently runs on the
// system's Node. Tests that pass there prove nothing, so they do not start there.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 15)) {
  throw new Error(
    `tests need Node 24.15 or newer, this is ${process.version}; run them by \`npm test\``,
  );
}
