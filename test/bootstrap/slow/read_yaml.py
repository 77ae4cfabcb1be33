# SPDX-License-Identifier: Apache-2.0
"""Parses YAML like cloud-init and prints it as JSON."""
import json
import sys

import yaml

with open(sys.argv[1], encoding="utf-8", newline="") as file:
    json.dump(yaml.safe_load(file.read()), sys.stdout)
