"""Checks the server's health 600 times with a GET of a path."""

import os
import sys
import time
from urllib.parse import urljoin

import httpx

with httpx.Client() as client:
    for _ in range(600):
        client.get(urljoin(os.environ["MCP_URL"], sys.argv[1]))
        time.sleep(0.01)
