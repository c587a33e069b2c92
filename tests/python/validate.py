"""What yangson, a validator of its own, says of RFC 7951 documents.

    python validate.py YANG_DIRECTORY LIBRARY FILE...

LIBRARY is the YANG library of what the documents may hold. Prints a line for each file: its name
and `valid`, or what is wrong with it.
"""

import json
import sys

from yangson import DataModel
from yangson.enumerations import ContentType

directory, library, *files = sys.argv[1:]
model = DataModel.from_file(library, [directory])
for name in files:
    try:
        with open(name, encoding="utf-8") as file:
            model.from_raw(json.load(file)).validate(ctype=ContentType.all)
        verdict = "valid"
    except Exception as error:  # noqa: BLE001: each kind of fault is a verdict
        verdict = f"{type(error).__name__}: {error}".replace("\n", " ")
    print(f"{name}\t{verdict}", flush=True)
