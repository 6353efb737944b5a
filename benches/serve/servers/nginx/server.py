"""nginx that answers every request with constant bytes: a second floor, in C.

Usage: server.py PORT FOLDER [CERTIFICATE KEY].

It reads and discards a request's body, as the floor on hyper does. Without a certificate it speaks HTTP/1.1 only.
"""

import os
import sys
from pathlib import Path

CONFIGURATION = """
daemon off;
pid {folder}/{port}.pid;
worker_processes {cores};
error_log stderr error;
events {{ worker_connections 16384; }}
http {{
    access_log off;
    default_type application/json;
    keepalive_requests 1000000000;
    {temporary}
    server {{
        listen 127.0.0.1:{port} reuseport {protocols};
        {certificate}
        location / {{
            return 200 '{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"hi"}}]}}}}';
        }}
    }}
}}
"""


def main() -> None:
    port, folder, *files = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    text = CONFIGURATION.format(
        folder=folder,
        cores=len(os.sched_getaffinity(0)),
        port=port,
        protocols="ssl http2" if files else "",
        certificate="ssl_certificate {}; ssl_certificate_key {};".format(*files) if files else "",
        temporary=" ".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds),
    )
    configuration = Path(folder) / f"{port}.conf"
    configuration.write_text(text)
    os.execlp("nginx", "nginx", "-e", "stderr", "-p", folder, "-c", str(configuration))


main()
