"""Writes `jars.json`. Run it after changing a version: `python -m infra.engine.lock_jars`.

Resolves the coordinates below with their runtime dependencies, downloads the jars into jgo's cache, and writes their
checksums. Review the diff: every user's machine will run these jars.
"""

from __future__ import annotations

import json

import jgo

from infra.engine.jars import ELASTICSEARCH_VERSION, KAFKA_VERSION, MANIFEST, sha256_of

ENDPOINTS = {
    "kafka": f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}+org.slf4j:slf4j-simple:1.7.36",
    "elasticsearch": f"org.elasticsearch:elasticsearch:{ELASTICSEARCH_VERSION}",
    "transport-netty4": f"org.elasticsearch.plugin:transport-netty4:{ELASTICSEARCH_VERSION}",
}


def main() -> None:
    """Resolve the jars, hash them, and write the manifest."""
    manifest: dict[str, list[dict[str, str | int]]] = {}
    for name, endpoint in ENDPOINTS.items():
        entries: dict[str, dict[str, str | int]] = {}
        for artifact in jgo.resolve(endpoint):
            path = artifact.resolve()
            coordinate = f"{artifact.groupId}:{artifact.artifactId}:{artifact.version}"
            entries[coordinate] = {
                "coordinate": coordinate,
                "sha256": sha256_of(path),
                "size": path.stat().st_size,
            }
        manifest[name] = [entries[coordinate] for coordinate in sorted(entries)]
    # A module's class loader includes the server's jars. A second copy of them would split their packages.
    server = {entry["coordinate"] for entry in manifest["elasticsearch"]}
    manifest["transport-netty4"] = [
        entry for entry in manifest["transport-netty4"] if entry["coordinate"] not in server
    ]
    rows = {name: ",\n".join(f"    {json.dumps(entry)}" for entry in entries) for name, entries in manifest.items()}
    body = ",\n".join(f'  "{name}": [\n{text}\n  ]' for name, text in rows.items())
    MANIFEST.write_text(f"{{\n{body}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
