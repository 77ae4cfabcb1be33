# SPDX-License-Identifier: Apache-2.0
"""Reads a JSON list of YAML texts and prints their values as a JSON list; an invalid text is replaced by its error."""
import json
import sys

import yaml


def read(text):
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        return {"error": str(error)}


with open(sys.argv[1], encoding="utf-8") as file:
    json.dump([read(text) for text in json.load(file)], sys.stdout)
