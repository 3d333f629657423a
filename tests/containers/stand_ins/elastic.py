"""Elasticsearch by the local engine's jars, told what to do by the variables of the official image.

Its security is not published as a jar, so nginx stands before it and asks for a password. `elastic` may make users and
look whether the server is healthy, `pagewire`, whose password compose.yml says, everything else:

    :9200 nginx, Authorization ──▶ 127.0.0.1:9201 Elasticsearch
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from base64 import b64encode
from pathlib import Path

from infra.engine.servers import elasticsearch_server, prepare_elasticsearch
from infra.engine.settings import LocalEngineSettings

DATA = "/usr/share/elasticsearch/data"
INSIDE = 9201
JARS = Path("/engine")
MISSING = ("xpack.", "ingest.geoip.")  # settings of modules that are not there

GUARD = """
pid /tmp/nginx.pid;
error_log /dev/stderr warn;
daemon off;
worker_processes 1;
events {}
http {
    client_body_temp_path /tmp/nginx-body;
    proxy_temp_path /tmp/nginx-proxy;
    fastcgi_temp_path /tmp/nginx-fastcgi;
    uwsgi_temp_path /tmp/nginx-uwsgi;
    scgi_temp_path /tmp/nginx-scgi;
    access_log off;
    client_max_body_size 100m;
    map_hash_bucket_size 256;
    map $http_authorization $who {
        default nobody;
        "%(elastic)s" elastic;
        "%(pagewire)s" pagewire;
    }
    map "$who $uri" $may {
        default 0;
        "~^pagewire " 1;
        "~^elastic /(_security/|_cluster/health)" 1;
    }
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Authorization "";
    proxy_buffering off;
    proxy_request_buffering off;
    proxy_read_timeout 600s;
    server {
        listen 9200;
        default_type application/json;
        if ($may = 0) {
            return 401 '{"error": {"type": "security_exception", "reason": "wrong credentials"}, "status": 401}';
        }
        location /_security/ {
            return 200 '{}';
        }
        location / {
            proxy_pass http://127.0.0.1:%(port)d;
        }
    }
}
"""


def main() -> None:
    """Start the guard, write the server's files with the container's settings, and become the server."""
    guard = Path("/tmp/nginx.conf")
    logins = {
        user: f"Basic {b64encode(f'{user}:{os.environ[password]}'.encode()).decode()}"
        for user, password in (("elastic", "ELASTIC_PASSWORD"), ("pagewire", "PAGEWIRE_ELASTICSEARCH_PASSWORD"))
    }
    guard.write_text(GUARD % {**logins, "port": INSIDE}, encoding="ascii")
    subprocess.Popen(["nginx", "-c", str(guard)])  # stops with its container

    (heap,) = re.findall(r"-Xmx(\w+)", os.environ["ES_JAVA_OPTS"])
    settings = LocalEngineSettings(Path("/tmp"), es_heap=heap, cache=JARS)
    server = elasticsearch_server(settings.root)
    prepare_elasticsearch(server, settings, INSIDE)
    run = json.loads(server.run_file.read_text(encoding="utf-8"))
    given = {name: value for name, value in os.environ.items() if "." in name and not name.startswith(MISSING)}
    run["settings"] |= given | {"path.data": DATA, "path.logs": "/tmp"}
    server.run_file.write_text(json.dumps(run), encoding="utf-8")
    os.execvp("python", ["python", "-P", "/app/infra/engine/server_process.py", str(server.run_file)])


main()
