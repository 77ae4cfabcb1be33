# SPDX-License-Identifier: Apache-2.0
"""Reads every file of a seed under each of its three names and prints JSON: {path kind: {name: base64}}."""
import base64
import io
import json
import sys

import pycdlib

iso = pycdlib.PyCdlib()
iso.open(sys.argv[1])
assert iso.pvd.volume_identifier.rstrip() == b"cidata", iso.pvd.volume_identifier
assert iso.has_rock_ridge() and iso.has_joliet()
path_kinds = {"rr_path": {}, "joliet_path": {}, "iso_path": {}}
for path_kind, found in path_kinds.items():
    for child in iso.list_children(**{path_kind: "/"}):
        if child is None or child.is_dot() or child.is_dotdot():
            continue
        if path_kind == "rr_path":
            name = child.rock_ridge.name().decode()
        elif path_kind == "joliet_path":
            name = child.file_identifier().decode("utf-16-be")
        else:
            name = child.file_identifier().decode()
        content = io.BytesIO()
        iso.get_file_from_iso_fp(content, **{path_kind: "/" + name})
        found[name] = base64.b64encode(content.getvalue()).decode()
iso.close()
json.dump(path_kinds, sys.stdout)
