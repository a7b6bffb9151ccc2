# SPDX-License-Identifier: MIT
"""Container images as archives that containerd imports, each of one layer (OCI's image specification)."""
import hashlib
import io
import json
import platform
import tarfile

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
TYPE = "application/vnd.oci.image."


def add(archive, name, content):
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def add_blob(archive, content, kind=None):
    """Return its descriptor."""
    digest = hashlib.sha256(content).hexdigest()
    add(archive, f"blobs/sha256/{digest}", content)
    return {"mediaType": TYPE + kind, "digest": f"sha256:{digest}", "size": len(content)}


def write(path, name, layer, command):
    """Write the image `name` of the archive `layer`, a root file system."""
    with tarfile.open(path, "w") as archive:
        layers = [add_blob(archive, layer.read_bytes(), "layer.v1.tar")]
        config = {"architecture": ARCHITECTURES[platform.machine()], "os": "linux",
                  "config": {"Cmd": command, "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]},
                  "rootfs": {"type": "layers", "diff_ids": [layers[0]["digest"]]}}
        manifest = {"schemaVersion": 2, "mediaType": TYPE + "manifest.v1+json", "layers": layers,
                    "config": add_blob(archive, json.dumps(config).encode(), "config.v1+json")}
        described = add_blob(archive, json.dumps(manifest).encode(), "manifest.v1+json")
        described["annotations"] = {"io.containerd.image.name": f"docker.io/library/{name}"}
        add(archive, "index.json", json.dumps({"schemaVersion": 2, "manifests": [described]}).encode())
        add(archive, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
