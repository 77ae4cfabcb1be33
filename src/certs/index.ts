// SPDX-License-Identifier: Apache-2.0
// A private certificate authority for the gRPC server and its clients. Importing it loads an X.509 library.
export { CertificateAuthority, type CertificatePair, createAuthority } from './authority.ts';
