"""Validates records by JSON schemas.

Reads {"schemas": {kind: schema}, "records": [[kind, record], ...]}, and prints the errors of each record as a list of texts.
"""

import json
import sys

from jsonschema import validators


def validator(schema):
    of_version = validators.validator_for(schema)
    of_version.check_schema(schema)
    return of_version(schema)


given = json.load(sys.stdin)
by_kind = {kind: validator(schema) for kind, schema in given["schemas"].items()}
errors = [
    [f"{error.json_path}: {error.message}" for error in by_kind[kind].iter_errors(record)]
    for kind, record in given["records"]
]
json.dump(errors, sys.stdout)
