"""The settings of a web server for a built book: what a browser may run and load from it, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

from k3lib.facts.tables import read_text

FILE = "k3-nginx.conf"
_SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<code>.*?)</script>", flags=re.DOTALL)
_NOT_RUN = re.compile(r'\bsrc=|\btype="application/json"')
_NGINX = """\
# A plain web server for this book: put it into /etc/nginx/conf.d/, with the name and the folder of yours, and add TLS.
# The policy allows the scripts of this build one by one: take this file again after each build.
server {{
    listen 80;
    server_name k3.example.org;
    root /srv/k3/html;
    index index.html;
    error_page 404 /404.html;
    charset utf-8;

    add_header Content-Security-Policy "{policy}" always;
    add_header X-Content-Type-Options "nosniff" always;
    add_header Referrer-Policy "no-referrer" always;

    gzip on;
    gzip_vary on;
    gzip_min_length 1024;
    gzip_types text/css text/csv text/javascript application/javascript application/json image/svg+xml;

    # Pages are asked for again each time, a short answer when they are the same; scripts and figures once an hour.
    location / {{
        expires -1;
    }}
    location ~ ^/(.*/)?_(static|images)/ {{
        expires 1h;
    }}
}}
"""


def policy(html: Path) -> str:
    """The value of the header Content-Security-Policy for the pages of a folder: no address but their own.

    Inline scripts are allowed by their hashes; styles inline at all, since equations are set with them.
    """
    codes = {found["code"] for page in html.rglob("*.html") for found in _SCRIPT.finditer(read_text(page))
             if not _NOT_RUN.search(found["attributes"])}  # fmt: skip
    hashes = sorted(base64.b64encode(hashlib.sha256(code.encode()).digest()).decode() for code in codes)
    allowed = {
        "default-src": ["'none'"],
        "script-src": ["'self'", *(f"'sha256-{one}'" for one in hashes)],
        "style-src": ["'self'", "'unsafe-inline'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
    return "; ".join(" ".join([name, *values]) for name, values in allowed.items())


def nginx(html: Path) -> str:
    """A server block of nginx for the pages of a folder."""
    return _NGINX.format(policy=policy(html))
