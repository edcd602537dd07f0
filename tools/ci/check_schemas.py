#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Validates the YAML files of the checkout against the JSON Schemas that they name.

    tools/ci/check_schemas.py [ROOT]

Each file below configs, docs and validation names its schema in a line
`# yaml-language-server: $schema=RELATIVE/PATH.json`, except where WITHOUT_SCHEMA has its folder. Prints
each error, and exits with 1 if there is any.
"""
import json
import os
import re
import sys

import jsonschema
import yaml

LINE = re.compile(r"^# yaml-language-server: \$schema=(\S+)$", re.MULTILINE)

# Golden data that only tests read.
WITHOUT_SCHEMA = ("validation/pipeline/", "validation/tcp/", "validation/transport/",
                  "validation/verbs/perftest")


class Loader(yaml.SafeLoader):
    """Knows the scalars of YAML 1.2, as editors and Trainyard do: `off` is a text."""


Loader.yaml_implicit_resolvers = {}
for tag, pattern, first in (
    ("bool", r"true|false", "tf"),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", r"~|null|", ["~", "n", ""]),
):
    Loader.add_implicit_resolver("tag:yaml.org,2002:" + tag, re.compile(f"^(?:{pattern})$"),
                                 list(first))


def yaml_files(root):
    for folder in ("configs", "docs", "validation"):
        for path, _, names in sorted(os.walk(os.path.join(root, folder))):
            yield from (os.path.join(path, name) for name in sorted(names)
                        if name.endswith(".yaml"))


def errors_of(root, file, validators):
    with open(file, encoding="utf-8") as stream:
        text = stream.read()
    named = LINE.search(text)
    if named is None:
        is_golden = os.path.relpath(file, root).startswith(WITHOUT_SCHEMA)
        return [] if is_golden else ["expected a line that names a schema, found none"]
    path = os.path.normpath(os.path.join(os.path.dirname(file), named.group(1)))
    if path not in validators:
        with open(path, encoding="utf-8") as stream:
            schema = json.load(stream)
        jsonschema.Draft7Validator.check_schema(schema)
        validators[path] = jsonschema.Draft7Validator(schema)
    document = yaml.load(text, Loader=Loader)
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message[:300]}"
            for error in validators[path].iter_errors(document)]


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    validators = {}
    count = 0
    for file in yaml_files(root):
        for error in errors_of(root, file, validators):
            count += 1
            print(f"{os.path.relpath(file, root)}: {error}")
    if not validators:
        count += 1
        print("expected files that name a schema, found none")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
