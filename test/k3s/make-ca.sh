#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make-ca.sh custom OUT: CAs for a new server, each below a root and an intermediate (three certificates in a file).
# make-ca.sh rotated OUT OLD: CAs below new roots, which those in the folder OLD have cross-signed (four certificates).
set -eu
how=$1 out=$2 old=${3:-}
mkdir -p "$out/etcd"

new_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }
# sign NAME SUBJECT ISSUER: NAME.pem from NAME.key, signed by ISSUER.pem and ISSUER.key
sign() {
  openssl req -new -key "$1.key" -subj "/CN=$2" |
    openssl x509 -req -days 3650 -CA "$3.pem" -CAkey "$3.key" -CAcreateserial -out "$1.pem" -extfile <(
      printf 'basicConstraints=critical,CA:true\nkeyUsage=critical,digitalSignature,keyEncipherment,keyCertSign\n'
      printf 'subjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid:always\n'
    ) 2>/dev/null
}
# A self-signed root
root() {
  new_key "$1"
  openssl req -x509 -new -key "$1.key" -subj "/CN=$2" -days 3650 -out "$1.pem" \
    -addext keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign
}

for name in client server request-header etcd/peer etcd/server; do
  file=$out/$name-ca
  subject="test-${name/\//-}-$how-$RANDOM"
  root "$file-root" "$subject-root"
  if [ "$how" = custom ]; then
    new_key "$file-middle"
    sign "$file-middle" "$subject-middle" "$file-root"
    new_key "$file"
    sign "$file" "$subject" "$file-middle"
    cat "$file.pem" "$file-middle.pem" "$file-root.pem" >"$file.crt"
  else
    cp "$old/$name-ca.crt" "$file-old.pem"
    cp "$old/$name-ca.key" "$file-old.key"
    cp "$file-root.key" "$file-cross.key"
    sign "$file-cross" "$subject-root" "$file-old"
    new_key "$file"
    sign "$file" "$subject" "$file-root"
    cat "$file.pem" "$file-root.pem" "$file-cross.pem" "$file-old.pem" >"$file.crt"
    cat "$file-root.key" >>"$file.key"
  fi
done
if [ "$how" = rotated ]; then
  openssl genrsa -traditional -out "$out/service.key" 2048 2>/dev/null
  cat "$old/service.key" >>"$out/service.key"
fi
