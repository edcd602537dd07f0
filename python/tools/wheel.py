#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs what a build has made into a wheel: the module, the library and the configs.

    python3 python/tools/wheel.py build/release FOLDER

A wheel is an archive with a list of its files (PEP 427). The same build gives the same bytes. It is
for machines with the same Python and the libraries that tools/setup/packages.sh names.
"""

import base64
import hashlib
import os
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

EPOCH = (1980, 1, 1, 0, 0, 0)  # The first time that an archive can have.


def installed(build, folder):
    """Installs the build below the folder and returns the paths of wheel and file."""
    subprocess.run(["cmake", "--install", build, "--prefix", folder], check=True,
                   stdout=subprocess.DEVNULL)
    files = {}
    for root, _, names in os.walk(folder):
        for name in names:
            file = os.path.join(root, name)
            path = os.path.relpath(file, folder)
            if "/trainyard/configs/" in path:
                files["trainyard/configs/" + path.split("/trainyard/configs/")[1]] = file
            elif "dist-packages/trainyard/" in path:
                files["trainyard/" + path.split("dist-packages/trainyard/")[1]] = file
            elif name.startswith("libtrainyard.so.") and name.count(".") == 3:  # As it is loaded.
                files["trainyard/" + name] = file
    return files


def record_line(path, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}\n"


def main():
    build, target = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        contents = {}
        for path, file in installed(build, folder).items():
            with open(file, "rb") as data:
                contents[path] = data.read()
    sys.path.insert(0, os.path.join(build, "python"))
    import trainyard

    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tag = f"{python}-{python}-{platform}"
    info = f"trainyard-{trainyard.__version__}.dist-info"
    contents[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: trainyard\nVersion: {trainyard.__version__}\n"
        "Summary: Discrete-event simulator of AI clusters\nLicense: Apache-2.0\n"
        f"Requires-Python: >={sys.version_info.major}.{sys.version_info.minor}\n").encode()
    contents[f"{info}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: python/tools/wheel.py\nRoot-Is-Purelib: false\n"
        f"Tag: {tag}\n").encode()
    lines = "".join(record_line(path, contents[path]) for path in sorted(contents))
    contents[f"{info}/RECORD"] = (lines + f"{info}/RECORD,,\n").encode()
    wheel = os.path.join(target, f"trainyard-{trainyard.__version__}-{tag}.whl")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(contents):
            entry = zipfile.ZipInfo(path, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, contents[path])
    print(wheel)


if __name__ == "__main__":
    main()
